// The scope rule, and values that go from block to block within a phase.
#include "Kernels.h"

#include "Gir/Scope.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// What the verifier says of a kernel with one phase over 4 blocks of 2 units of 4 lanes; empty where nothing.
std::string refusal(const std::string &body, const std::string &blocks = "b: 4") {
  const std::string text = "kernel @k units 2 lanes 4 {\n  symbol n = 1..4096 opt 100 divisor 1\n"
                           "  param %i i64[256]\n  param out %t f32[256]\n  param out %y f32[256]\n"
                           "  param out %rows f32[4,n]\n  phase (" +
                           blocks + ") {\n" + body + "  }\n}\n";
  TextReader in(text, "test");
  auto kernel = parseGirKernel(in, oneSymbol());
  return kernel.ok() ? "" : kernel.errors().front().text;
}

const std::string kOwn = "b*8 + u*4 + l";

std::string storeThenRead(const std::string &stored, const std::string &read) {
  auto nest = [](const std::string &s) { return "unit u in 2 { lane l in 4 { " + s + " } }\n"; };
  return nest("%t[" + stored + "] = 1.0") + nest("%y[" + kOwn + "] = %t[" + read + "]");
}

} // namespace

TEST_CASE("the scope rule: the same unit and pattern, the same unit, the same block") {
  // Units are numbered through the whole grid.
  auto scope = [](int64_t storing, int64_t reading, bool samePattern) {
    return scopeOf({.sameBlock = storing / 4 == reading / 4,
                    .sameUnit = storing == reading,
                    .samePattern = samePattern});
  };
  CHECK(scope(5, 5, true) == Scope::Lane);
  CHECK(scope(5, 5, false) == Scope::Unit);
  for (int64_t reading : {4, 6, 7}) {
    CHECK(scope(5, reading, true) == Scope::Block); // a pattern counts within one unit alone
    CHECK(scope(5, reading, false) == Scope::Block);
  }
  for (int64_t reading : {0, 3, 8, 1000}) {
    CHECK(scope(5, reading, true) == Scope::Device);
    CHECK(scope(reading, 5, false) == Scope::Device);
  }
}

namespace {

/// What stands between a store and a read of its elements in a kernel of four warps a block, once the barriers are
/// inserted: "lane" nothing, "unit" and "block" a Sync, "device" where the verifier refuses the phase.
std::string between(const std::string &body) {
  const std::string without =
      "kernel @k units 4 lanes 32 {\n  param out %t f32[512]\n  param out %y f32[512]\n"
      "  shared %s f32[128]\n  phase (b: 4) {\n" +
      body + "  }\n}\n";
  TextReader in(without, "test");
  Result<GirKernel> kernel = parseGirKernel(in, {});
  if (!kernel.ok()) {
    CHECK(kernel.errors()[0].text.find("what one block stores no other one reads") == 0);
    return "device";
  }
  insertSyncs(*kernel);
  CHECK(verify(*kernel).ok());
  const std::string text = print(*kernel);
  INFO(text);
  const bool unit = text.find("sync unit") != std::string::npos,
             block = text.find("sync block") != std::string::npos;
  CHECK(!(unit && block));
  return unit ? "unit" : block ? "block" : "lane";
}

std::string inLanes(const std::string &statement) { return "lane l in 32 { " + statement + " } "; }
std::string inUnits(const std::string &body) { return "unit u in 4 { " + body + "}\n"; }

} // namespace

TEST_CASE("the scope table holds for the barriers that kernels get, with four warps a block") {
  const std::string own = "u*32 + l", next = "u*32 + floormod(l + 1, 32)",
                    nextUnit = "floormod(u*32 + l + 32, 128)";
  const std::string store = inLanes("%s[" + own + "] = 1.0");
  auto read = [](const std::string &at) {
    return inLanes("%y[b*128 + u*32 + l] = %s[" + at + "]");
  };
  CHECK(between(inUnits(store + read(own))) == "lane");
  CHECK(between(inUnits(store) + inUnits(read(own))) == "lane");
  CHECK(between(inUnits(store + read(next))) == "unit");
  CHECK(between(inUnits(store) + inUnits(read(nextUnit))) == "block");
  // The same through device memory, of which each block has a part.
  const std::string far = inLanes("%t[b*128 + u*32 + l] = 1.0");
  auto readFar = [](const std::string &at) {
    return inLanes("%y[b*128 + u*32 + l] = %t[" + at + "]");
  };
  CHECK(between(inUnits(far + readFar("b*128 + " + own))) == "lane");
  CHECK(between(inUnits(far + readFar("b*128 + " + next))) == "unit");
  CHECK(between(inUnits(far) + inUnits(readFar("b*128 + " + nextUnit))) == "block");
  CHECK(between(inUnits(far) + inUnits(readFar("floormod(b*128 + u*32 + l + 128, 512)"))) ==
        "device");
}

TEST_CASE("a phase whose blocks read what others store is refused") {
  CHECK(
      refusal(storeThenRead(kOwn, "floormod(" + kOwn + " + 8, 32)")) ==
      "what one block stores no other one reads before the next phase; block 0 reads element 8 of "
      "%t, which block 1 stores");
  CHECK(refusal(storeThenRead(kOwn, "0")) != "");
  CHECK(refusal(storeThenRead(kOwn, "b*8 + u*4 + l + 1")) !=
        ""); // the last lane, its neighbour's first
  CHECK(refusal(storeThenRead("b*7 + u*4 + l", "b*7 + u*4 + l")) != ""); // blocks overlap
  CHECK(refusal("%t[5] sum= 1.0\n") != "");
  CHECK(refusal("%t[5] sum= 1.0\n", "b: 8, c: 8, d: 8, e: 8, f: 8") != "");
  // Rows of a symbolic length that are one too long.
  CHECK(refusal("seq i in dim(n + 1) { %t[b*dim(n) + i] = 1.0 }\n"
                "seq i in dim(n) { %y[b*dim(n) + i] = %t[b*dim(n) + i] }\n") != "");
}

TEST_CASE("blocks may read what they stored themselves, and what nobody stores in the phase") {
  CHECK(refusal(storeThenRead(kOwn, kOwn)) == "");
  CHECK(refusal(storeThenRead(kOwn, "b*8 + u*-4 + l*-1 + 7")) == "");
  CHECK(refusal(storeThenRead(kOwn, "32 + floormod(" + kOwn + " + 8, 32)")) == "");
  CHECK(refusal(storeThenRead(kOwn, "0"), "b: 1") == "");
  // A guarded read of the block's own half.
  CHECK(refusal("unit u in 2 { lane l in 4 { if lt(l, 2) { %t[b*2 + l] = 1.0 } } }\n"
                "unit u in 2 { lane l in 4 { %y[" +
                kOwn + "] = if(lt(l, 2), %t[b*2 + l], 0.0) } }\n") == "");
  // Beyond the end of a row lies no element of the next: a rule of the model excludes this size of n.
  CHECK(refusal("seq i in 101 { %rows[b,i] = 1.0 }\n%y[b] = %rows[b,0]\n") == "");
  CHECK(refusal("seq i in 100 { %rows[b,i] = 1.0 }\n%y[b] = %rows[3 - b,0]\n") != "");
  // Data decides: the interpreter and the simulator would see it.
  CHECK(refusal(storeThenRead(kOwn, "%i[" + kOwn + "]")) == "");
}

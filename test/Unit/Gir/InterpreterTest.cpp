// The interpreter computes what kernels say, bit for bit, and reports races, bad indices and garbage.
#include "Kernels.h"

#include "Gir/StatementPaths.h"
#include "Gir/Walk.h"
#include "Reference/GirInterpreter.h"
#include "Support/Half.h"

#include <cmath>
#include <cstring>

using namespace fusec;
using namespace fusec::test;

namespace {

template <typename T> GirArgument argument(std::vector<T> &v) {
  return {reinterpret_cast<uint8_t *>(v.data()), static_cast<int64_t>(v.size() * sizeof(T))};
}

std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> out(n);
  uint32_t state = static_cast<uint32_t>(seed) * 747796405u + 1;
  for (float &v : out) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 23);
  }
  return out;
}

std::string faultOf(const GirKernel &kernel, const std::vector<GirArgument> &arguments,
                    const std::vector<int64_t> &symbols = {100}) {
  auto status = run(kernel, arguments, symbols);
  return status.ok() ? "" : status.errors().front().text;
}

GirKernel withSyncs(const std::string &text) {
  GirKernel kernel = kernelFrom(text);
  insertSyncs(kernel);
  return kernel;
}

std::string without(std::string text, const std::string &line) {
  size_t at = text.find(line);
  REQUIRE(at != std::string::npos);
  return text.erase(at, line.size());
}

} // namespace

TEST_CASE("an element-wise kernel handles the tail and touches nothing else") {
  std::vector<float> x = numbers(100, 1), y(100, 7.0f);
  REQUIRE(faultOf(kernelFrom(kElementwise), {argument(x), argument(y)}) == "");
  for (size_t i = 0; i < 100; ++i)
    CHECK(y[i] == std::max(x[i], 0.0f) + 1.0f);
}

TEST_CASE("a row reduction adds in the order that lanes and butterflies give") {
  std::vector<float> x = numbers(600, 2), y(6);
  REQUIRE(faultOf(kernelFrom(kRowSum), {argument(x), argument(y)}) == "");
  for (size_t r = 0; r < 6; ++r) {
    float lanes[32] = {};
    for (size_t c = 0; c < 100; ++c)
      lanes[c % 32] += x[r * 100 + c];
    for (size_t d = 16; d >= 1; d /= 2) {
      float next[32];
      for (size_t l = 0; l < 32; ++l)
        next[l] = lanes[l] + lanes[l ^ d];
      std::memcpy(lanes, next, sizeof next);
    }
    CHECK(y[r] == lanes[0]);
  }
}

TEST_CASE("a staged matmul on 4 units accumulates by fma, also with allocated shared memory") {
  std::vector<float> a = numbers(64 * 48, 3), b = numbers(48 * 32, 4);
  GirKernel kernel = withSyncs(kStagedMatmul);
  for (bool allocated : {false, true}) {
    if (allocated)
      allocate(kernel);
    std::vector<float> c(64 * 32);
    REQUIRE(faultOf(kernel, {argument(a), argument(b), argument(c)}) == "");
    for (size_t m = 0; m < 64; ++m)
      for (size_t n = 0; n < 32; ++n) {
        float sum = 0;
        for (size_t k = 0; k < 48; ++k)
          sum = std::fma(a[m * 48 + k], b[k * 32 + n], sum);
        REQUIRE(c[m * 32 + n] == sum);
      }
  }
}

TEST_CASE("a missing barrier is reported with kernel, statement and buffer") {
  std::vector<float> a = numbers(64 * 48, 3), b = numbers(48 * 32, 4), c(64 * 32);
  std::vector<GirArgument> arguments = {argument(a), argument(b), argument(c)};
  auto status = run(kernelFrom(kStagedMatmul), arguments, {100});
  REQUIRE(!status.ok());
  CHECK(format(status.errors().front()) ==
        "error[E3003] kernel @mm: '%acc[i] sum= mul(%as[u*8 + i, kk], %bs[kk, l])' element 0 of "
        "%as is read by "
        "another thread than the one that wrote it, without a barrier between");
  // Each of the two barriers is needed.
  std::string text = print(withSyncs(kStagedMatmul));
  std::string first = without(text, "      sync block\n      unit");
  first.insert(text.find("      sync block\n      unit"), "      unit");
  CHECK(faultOf(kernelFrom(first), arguments).find("without a barrier between") !=
        std::string::npos);
  std::string second = without(text, "      sync block\n    }");
  second.insert(text.find("      sync block\n    }"), "    }");
  CHECK(faultOf(kernelFrom(second), arguments)
            .find("written by another thread than one that read it") != std::string::npos);
}

TEST_CASE("branches that overwrite each other's elements are reported") {
  std::vector<float> x(8, 1.0f), y(8);
  const std::string text =
      "kernel @k units 1 lanes 4 {\n  param %x f32[8]\n  param out %y f32[8]\n"
      "  shared %s f32[4]\n  phase () { seq i in 2 { if lt(i, 1) { lane l in 4 { "
      "%s[l] = 1.0 } } else { lane l in 4 { %s[INDEX] = 2.0 } } } "
      "lane l in 4 { %y[l] = %s[l] } } }";
  auto faultAt = [&](const std::string &index) {
    std::string with = text;
    with.replace(with.find("INDEX"), 5, index);
    return faultOf(withSyncs(with), {argument(x), argument(y)});
  };
  CHECK(faultAt("l") == "");
  CHECK(faultAt("floormod(l + 1, 4)").find("written by two threads") != std::string::npos);
}

TEST_CASE("lanes that exchange values inside a Lane loop, and blocks that meet, are reported") {
  std::string head =
      "kernel @k units 1 lanes 4 {\n  param %x f32[8]\n  param out %y f32[8]\n  shared %s f32[4]\n";
  std::vector<float> x(8, 1.0f), y(8);
  std::vector<GirArgument> arguments = {argument(x), argument(y)};
  CHECK(faultOf(
            kernelFrom(head +
                       "phase () { lane l in 4 { %s[l] = 1.0 %y[l] = %s[floormod(l + 1, 4)] } } }"),
            arguments) ==
        "'%y[l] = %s[floormod(l + 1, 4)]' element 1 of %s is read by another thread than the one "
        "that wrote it, without a barrier between");
  CHECK(faultOf(kernelFrom(head + "phase (b: 2) { %y[0] = 1.0 } }"), arguments) ==
        "'%y[0] = 1.0' element 0 of %y is written by two blocks in the same phase");
  CHECK(faultOf(
            kernelFrom(head +
                       "phase (b: 2) { %y[b] = 1.0 } phase (b: 2) { %y[b + 2] = %y[b*-1 + 1] } }"),
            arguments) == "");
  CHECK(y == std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("a value read by another block before the next phase is reported") {
  // The verifier refuses the text; a kernel that got past it is caught when it runs.
  GirKernel kernel =
      kernelFrom("kernel @k units 1 lanes 4 {\n  param out %t f32[8]\n"
                 "  param out %y f32[8]\n"
                 "  phase (b: 2) { lane l in 4 { %t[b*4 + l] = 1.0 } }\n"
                 "  phase (c: 2) { lane l in 4 { %y[c*4 + l] = %t[c*-4 + 4 + l] } } }");
  std::vector<float> t(8), y(8);
  CHECK(faultOf(kernel, {argument(t), argument(y)}) == "");
  for (Stmt &s : kernel.phases[1].body) {
    for (Stmt &inner : s.body)
      for (NodeId *ref : exprRefs(inner))
        *ref = renamed(kernel.body, *ref,
                       {{kernel.phases[1].blocks[0].var, kernel.phases[0].blocks[0].var}});
    kernel.phases[0].body.push_back(s);
  }
  kernel.phases.pop_back();
  CHECK(
      faultOf(kernel, {argument(t), argument(y)}) ==
      "'%t[b*4 + l] = 1.0' element 4 of %t is written by one block and read by another in the same "
      "phase");
  auto status = verify(kernel);
  REQUIRE(!status.ok());
  CHECK(format(status.errors().front()) ==
        "error[E3003] kernel @k: what one block stores no other one reads before the next phase; "
        "block 0 reads element 4 of %t, which block 1 stores");
}

TEST_CASE("phases with rounds run again and again, and blocks meet between them alone") {
  // Each round adds up neighbours: the one half is read, the other one written.
  const std::string text = R"(kernel @rounds units 1 lanes 4 {
  param %x f32[8]
  param scratch %s f32[16]
  param out %y f32[8]
  phase (b: 2) {
    lane l in 4 {
      %s[b*4 + l] = %x[b*4 + l]
    }
  }
  rounds (round: 3) {
    phase (b_2: 2) {
      lane l in 4 {
        let t0 = %s[floormod(round, 2)*8 + b_2*4 + l];
        let t1 = %s[floormod(round, 2)*8 + floormod(b_2*4 + l + 1, 8)];
        %s[floormod(round + 1, 2)*8 + b_2*4 + l] = add(t0, t1)
      }
    }
  }
  phase (b: 2) {
    lane l in 4 {
      %y[b*4 + l] = %s[b*4 + l + 8]
    }
  }
}
)";
  std::vector<float> x = numbers(8, 5), s(16), y(8), expected = x;
  REQUIRE(faultOf(kernelFrom(text), {argument(x), argument(s), argument(y)}) == "");
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> before = expected;
    for (size_t i = 0; i < 8; ++i)
      expected[i] = before[i] + before[(i + 1) % 8];
  }
  CHECK(y == expected);

  // In place, blocks would read what others write in the same round.
  std::string inPlace = text;
  for (size_t at; (at = inPlace.find("floormod(round + 1, 2)*8 + ")) != std::string::npos;)
    inPlace.erase(at, 27);
  for (size_t at; (at = inPlace.find("floormod(round, 2)*8 + ")) != std::string::npos;)
    inPlace.erase(at, 23);
  TextReader in(inPlace, "kernel");
  const Result<GirKernel> refused = parseGirKernel(in, oneSymbol());
  REQUIRE(!refused.ok());
  CHECK(format(refused.errors().front()) ==
        "error[E3003] kernel @rounds: what one block stores no other one reads before the next "
        "phase; block 0 reads element 4 of %s, which block 1 stores");
}

TEST_CASE("an index outside its buffer is reported") {
  std::vector<float> x = numbers(100, 1), y(100);
  std::string text = kElementwise;
  text.replace(text.find("dim(n)"), 6, "dim(n + 1)");
  CHECK(faultOf(kernelFrom(text), {argument(x), argument(y)}) ==
        "'%y[b*8 + l] = add(max(%x[b*8 + l], 0.0), 1.0)' index 100 of dimension 0 is outside %x, "
        "whose extent is 100");
  std::vector<float> tooSmall(99);
  CHECK(faultOf(kernelFrom(kElementwise), {argument(x), argument(tooSmall)}) ==
        "%y needs 400 bytes, its argument has 396");
}

TEST_CASE("reads of what nobody wrote are reported") {
  std::vector<float> x(600), y(8);
  CHECK(faultOf(kernelFrom(without(kRowSum, "%acc[] = 0.0\n")), {argument(x), argument(y)}) ==
        "'%acc[] sum= %x[b*2 + u, c*32 + l]' reads element 0 of register %acc in lane 0 of unit 0 "
        "before it is "
        "written");
  std::string text = "kernel @k units 1 lanes 4 {\n param out %y f32[8]\n shared %s f32[4]\n"
                     " phase () { %s[0] = 1.0 %y[0] = %s[1] } }";
  CHECK(faultOf(kernelFrom(text), {argument(y)}) ==
        "'%y[0] = %s[1]' element 1 of %s is read before this block wrote it");
}

TEST_CASE("a wrong allocation shows as a buffer that lost its bytes") {
  std::string text =
      "kernel @k units 1 lanes 4 shared 32 {\n param out %y f32[8]\n shared %s f32[4] at 0\n"
      " shared %t f32[4] at 8\n phase () { lane l in 4 { %s[l] = 1.0 } sync block\n"
      " lane l in 4 { %t[l] = 2.0 } sync block\n lane l in 4 { %y[l] = %s[l] } } }";
  std::vector<float> y(8);
  CHECK(faultOf(kernelFrom(text), {argument(y)}) ==
        "'%y[l] = %s[l]' element 2 of %s is read after another buffer took its bytes");
}

TEST_CASE("arg-max over lanes keeps the first index, and NaN wins") {
  std::string text =
      "kernel @k units 1 lanes 4 {\n param %x f32[16]\n param out %y f32[1]\n param out %i i64[1]\n"
      " register %v f32[]\n register %at i64[]\n phase () {\n %v[] = -inf\n %at[] = 0\n"
      " seq c in 4 { lane l in 4 { %v[], %at argmax= %x[c*4 + l], c*4 + l } }\n"
      " lanereduce argmax %v[], %at\n %y[0] = %v[]\n %i[0] = %at[] } }";
  std::vector<float> x(16, 1.0f), y(1);
  std::vector<int64_t> i(1);
  x[6] = x[9] = x[13] = 3.0f;
  REQUIRE(faultOf(kernelFrom(text), {argument(x), argument(y), argument(i)}) == "");
  CHECK(y[0] == 3.0f);
  CHECK(i[0] == 6);
  x[11] = std::nanf("");
  REQUIRE(faultOf(kernelFrom(text), {argument(x), argument(y), argument(i)}) == "");
  CHECK(i[0] == 11);
}

TEST_CASE("lanes exchange what they hold") {
  std::string text =
      "kernel @k units 1 lanes 4 {\n param out %y f32[4]\n register %v f32[]\n phase () {\n"
      " lane l in 4 { %v[] = cast(f32, l) }\n exchange %v[] xor 2\n exchange %v[] xor 1\n"
      " lane l in 4 { %y[l] = %v[] } } }";
  std::vector<float> y(4);
  REQUIRE(faultOf(kernelFrom(text), {argument(y)}) == "");
  CHECK(y == std::vector<float>{3, 2, 1, 0});
}

TEST_CASE("half arithmetic rounds after every operation, f32 maths are the project's own") {
  std::string text =
      "kernel @k units 1 lanes 4 {\n param %x f16[4]\n param out %y f16[4]\n param out %e f32[4]\n"
      " phase () { lane l in 4 { %y[l] = sub(add(%x[l], 2048.0), 2048.0)\n"
      " %e[l] = exp(cast(f32, %x[l])) } } }";
  std::vector<uint16_t> x = {halfFromFloat(1.0f), halfFromFloat(0.5f), halfFromFloat(3.0f),
                             halfFromFloat(-1.0f)},
                        y(4);
  std::vector<float> e(4);
  REQUIRE(faultOf(kernelFrom(text), {argument(x), argument(y), argument(e)}) == "");
  CHECK(halfToFloat(y[0]) == 0.0f); // 2049 rounds to 2048
  CHECK(halfToFloat(y[2]) == 4.0f); // 2051 rounds to 2052
  CHECK(halfToFloat(y[3]) == -1.0f);
  CHECK(e[0] == 2.71828175f);
}

TEST_CASE("while and scalar control run once a block") {
  std::string text =
      "kernel @k units 2 lanes 4 {\n param %x i64[8]\n param out %y i64[8]\n register uniform %i "
      "i64[]\n"
      " phase () {\n %i[] = 0\n while lt(%i[], 8) {\n if lt(%x[%i[]], 0) { %y[%i[]] = 0 } else {"
      " %y[%i[]] = %x[%i[]]*2 }\n %i[] = %i[] + 1\n } } }";
  std::vector<int64_t> x = {1, -2, 3, -4, 5, -6, 7, -8}, y(8, 99);
  REQUIRE(faultOf(kernelFrom(text), {argument(x), argument(y)}) == "");
  CHECK(y == std::vector<int64_t>{2, 0, 6, 0, 10, 0, 14, 0});
}

TEST_CASE("a program runs its variants, branches and loops") {
  std::string twice =
      "kernel @%name units 1 lanes 8 {\n symbol n = 1..4096 opt 100 divisor 1\n param %x f32[n]\n"
      " param out %y f32[n]\n phase (b: floordiv(n + 7, 8)) { lane l in 8 {"
      " if lt(b*8 + l, dim(n)) { %y[b*8 + l] = mul(%x[b*8 + l], %factor) } } } }\n";
  auto kernel = [&](const std::string &name, const std::string &factor) {
    std::string text = twice;
    text.replace(text.find("%name"), 5, name);
    return text.replace(text.find("%factor"), 7, factor);
  };
  std::string text =
      "program p target \"none\"\nsymbol n = 1..4096 opt 100 divisor 1\ninput %x f32[n]\ninput %c "
      "bool[]\n"
      "constant %three i64[] {3}\ntemp %t f32[n]\ntemp %u f32[n]\noutput %y f32[n]\n"
      "inputs (%x, %c)\noutputs (%y)\n" +
      kernel("double", "2.0") + kernel("half", "0.5") +
      "step few where (3 - n >= 0) { step few launch { else @double(%x, %t) } } else {"
      " step many launch { when (n - 10 >= 0) @half(%x, %t) else @double(%x, %t) } }\n"
      "step b if %c { step c launch { else @double(%t, %u) } } else { } copies (%t -> %u)\n"
      "step d loop trip %three before (%u -> %t) { step e launch { else @double(%t, %u) } }"
      " copies (%u -> %t) after (%t -> %y)\n";
  ConstantStore store;
  TextReader in(text, "test");
  auto program = parseGirProgram(in, store);
  if (!program.ok())
    FAIL(format(program.errors().front()));
  auto outputFor = [&](int64_t n, bool condition) {
    std::vector<uint8_t> x, c = {condition};
    for (int64_t i = 0; i < n; ++i)
      appendElement(x, DType::F32, 1.0);
    auto outputs =
        evaluate(*program, {makeConstant(DType::F32, {n}, x), makeConstant(DType::Bool, {}, c)});
    if (!outputs.ok())
      FAIL(format(outputs.errors().front()));
    CHECK(outputs->front()->dims == std::vector<int64_t>{n});
    return outputs->front()->floatAt(n - 1);
  };
  CHECK(outputFor(3, true) == 32.0);
  CHECK(outputFor(3, false) == 16.0);
  CHECK(outputFor(4, false) == 16.0);
  CHECK(outputFor(10, true) == 8.0);
}

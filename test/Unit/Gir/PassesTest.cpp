// Where barriers go, which shared buffers may share bytes, and what simplify drops.
#include "Kernels.h"

#include "Gir/Walk.h"

#include <random>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string afterSyncs(const std::string &text) {
  GirKernel kernel = kernelFrom(text);
  insertSyncs(kernel);
  return print(kernel);
}

int count(const std::string &text, const std::string &what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

GirKernel allocated(const std::string &text) {
  GirKernel kernel = kernelFrom(text);
  insertSyncs(kernel);
  allocate(kernel);
  auto status = verify(kernel);
  if (!status.ok())
    FAIL(format(status.errors().front()));
  return kernel;
}

int64_t offset(const GirKernel &kernel, const std::string &name) {
  for (const GirBuffer &b : kernel.buffers)
    if (b.name == name)
      return b.offsetBytes;
  return -2;
}

/// Body of a kernel with two shared buffers; 2 units of 4 lanes.
std::string sharedKernel(const std::string &body, int units = 2) {
  return "kernel @k units " + std::to_string(units) +
         " lanes 4 {\n  param %x f32[64]\n  param out %y f32[64]\n"
         "  register %r f32[]\n  shared %s f32[32]\n  shared %t f32[32]\n  phase () {\n" +
         body + "  }\n}\n";
}

const std::string kWriteS = "unit u in 2 { lane l in 4 { %s[u*4 + l] = %x[u*4 + l] } }\n";
const std::string kReadS = "unit u in 2 { lane l in 4 { %r[] = %s[floormod(u*4 + l + 4, 8)] } }\n";

} // namespace

TEST_CASE("a staged matmul gets one barrier after the copies and one before the next") {
  std::string text = afterSyncs(kStagedMatmul);
  INFO(text);
  CHECK(count(text, "sync block") == 2);
  CHECK(count(text, "sync unit") == 0);
  // The second one closes the k loop, in which both stand.
  CHECK(text.find("      sync block\n    }\n    unit") != std::string::npos);
}

TEST_CASE("inserting barriers again changes nothing") {
  std::string once = afterSyncs(kStagedMatmul);
  CHECK(afterSyncs(once) == once);
}

TEST_CASE("kernels without communication get no barrier") {
  CHECK(count(afterSyncs(kElementwise), "sync") == 0);
  CHECK(count(afterSyncs(kRowSum), "sync") == 0);
  // Each thread reads back its own element.
  CHECK(count(afterSyncs(
                  sharedKernel(kWriteS + "unit u in 2 { lane l in 4 { %r[] = %s[u*4 + l] } }\n")),
              "sync") == 0);
}

TEST_CASE("lanes of one unit are ordered by a barrier of the unit") {
  std::string text = afterSyncs(sharedKernel("unit u in 2 { lane l in 4 { %s[u*4 + l] = 1.0 } lane "
                                             "l in 4 { %r[] = %s[floormod(u*4 + l + 1, 8)] } }\n"));
  INFO(text);
  CHECK(count(text, "sync unit") == 1);
  CHECK(count(text, "sync block") == 0);
}

TEST_CASE("what the first unit stores in a lane loop, all units read behind a barrier") {
  const std::string storeAndRead = "%s[l] = %x[l] %r[] sum= %s[l]";
  auto synced = [&](const std::string &body, int units = 2) {
    std::string text = afterSyncs(sharedKernel(body, units));
    GirKernel kernel = kernelFrom(text);
    CHECK(verify(kernel).ok());
    return text;
  };
  std::string text = synced("lane l in 4 { " + storeAndRead + " }\n");
  INFO(text);
  CHECK(text.find("%s[l] = %x[l]\n    }\n    sync block\n    lane l in 4 {\n") !=
        std::string::npos);
  CHECK(count(text, "sync block") == 1);
  // Of each turn of a loop, and between one turn's reads and the next one's stores.
  text = synced("lane l in 4 { seq i in 3 { " + storeAndRead + " } }\n");
  INFO(text);
  CHECK(count(text, "sync block") == 2);
  CHECK(text.find("seq i in 3 {\n      lane l in 4 {\n") != std::string::npos);
  // A lone unit reads its own lanes' elements, and so does each unit that stores for itself.
  CHECK(count(synced("lane l in 4 { " + storeAndRead + " }\n", 1), "sync") == 0);
  CHECK(count(synced("unit u in 2 { lane l in 4 { %s[u*4 + l] = %x[l] %r[] sum= %s[u*4 + l] } }\n"),
              "sync") == 0);
}

TEST_CASE("accesses in both branches of an If, and reads by all threads, are seen") {
  CHECK(count(afterSyncs(sharedKernel("if lt(%x[0], 1.0) { " + kWriteS +
                                      "} else { %s[0] = 2.0 }\n" + kReadS)),
              "sync block") == 1);
  CHECK(count(afterSyncs(sharedKernel(kWriteS + "%y[0] = %s[3]\n")), "sync block") == 1);
  CHECK(count(afterSyncs(sharedKernel("%s[0] = 1.0\n%s[0] = 2.0\n")), "sync block") == 0);
}

TEST_CASE("the stores of full tiles and of cut ones are one statement's") {
  const std::string cut = "unit u in 2 { lane l in 4 { if lt(i*8 + u*4 + l, 20) "
                          "{ %s[i*8 + u*4 + l] = 2.0 } else { %s[i*8 + u*4 + l] = 0.0 } } }\n",
                    full = "unit u in 2 { %s[i*8 + u*4] = 1.0 }\n";
  auto loopOf = [](const std::string &then, const std::string &otherwise) {
    return afterSyncs(sharedKernel("seq i in 3 { if lt(i, 2) { " + then + "} else { " + otherwise +
                                   "} }\n" + kReadS));
  };
  const std::string text = loopOf(full, cut);
  INFO(text);
  CHECK(count(text, "sync") == 1);
  CHECK(text.find("    }\n    sync block\n    unit") != std::string::npos);
  // A second store of the same buffer is another one.
  CHECK(loopOf(full, cut + full).find("      sync block\n    }\n    unit") != std::string::npos);
}

TEST_CASE(
    "a barrier stands in front of a loop that needs it once, inside one that needs it each time") {
  std::string once = afterSyncs(sharedKernel(kWriteS + "seq i in 3 { " + kReadS + "}\n"));
  CHECK(once.find("    sync block\n    seq i") != std::string::npos);
  CHECK(count(once, "sync") == 1);
  std::string each = afterSyncs(sharedKernel(kWriteS + "seq i in 3 { " + kReadS + kWriteS + "}\n"));
  INFO(each);
  CHECK(count(each, "sync") == 2);
}

TEST_CASE("a while loop's predicate is ordered after the stores of its body") {
  std::string text =
      afterSyncs(sharedKernel("%s[0] = 0.0\nwhile lt(%s[0], 3.0) { %s[0] sum= 1.0 }\n"));
  INFO(text);
  CHECK(text.find("sync block\n    while") != std::string::npos);
  CHECK(text.find("sync block\n    }\n") != std::string::npos);
}

TEST_CASE("buffers that are never live together share bytes, with a barrier between") {
  std::string body =
      "seq i in 3 {\n" + kWriteS + kReadS + "unit u in 2 { lane l in 4 { %t[u*4 + l] = %r[] } }\n" +
      "unit u in 2 { lane l in 4 { %y[u*4 + l] = %t[floormod(u*4 + l + 4, 8)] } }\n}\n";
  GirKernel kernel = allocated(sharedKernel(body));
  std::string text = print(kernel);
  INFO(text);
  CHECK(kernel.sharedBytes == 128);
  CHECK(offset(kernel, "s") == 0);
  CHECK(offset(kernel, "t") == 0);
  CHECK(count(text, "sync block") == 4);
}

TEST_CASE("a value that an earlier iteration wrote keeps its bytes through the loop") {
  std::string body =
      "seq i in 3 {\n if lt(i, 1) {" + kWriteS + "}\n" + kReadS +
      "unit u in 2 { lane l in 4 { %t[u*4 + l] = %r[] } }\n" +
      "unit u in 2 { lane l in 4 { %y[u*4 + l] = %t[floormod(u*4 + l + 4, 8)] } }\n}\n";
  GirKernel kernel = allocated(sharedKernel(body));
  CHECK(kernel.sharedBytes == 256);
}

TEST_CASE("a value from before a loop keeps its bytes until the last iteration has read it") {
  const std::string writeT = "unit u in 2 { lane l in 4 { %t[u*4 + l] = 2.0 } }\n",
                    readT =
                        "unit u in 2 { lane l in 4 { %y[u*4 + l] = %t[floormod(u*4 + l + 4, 8)] "
                        "} }\n";
  CHECK(allocated(sharedKernel(kWriteS + "seq i in 3 {\n" + kReadS + writeT + readT + "}\n"))
            .sharedBytes == 256);
  CHECK(allocated(sharedKernel(kWriteS + kReadS + "seq i in 3 {\n" + writeT + readT + "}\n"))
            .sharedBytes == 128);
}

TEST_CASE("a buffer that both branches of an If fill is not live from the one to the other") {
  const std::string writeT = "unit u in 2 { lane l in 4 { %t[u*4 + l] = 2.0 } }\n",
                    readT = "unit u in 2 { lane l in 4 { %y[u*4 + l] = %t[u*-4 + l*-1 + 7] } }\n";
  auto bytes = [&](const std::string &then, const std::string &otherwise, const std::string &behind,
                   const std::string &before = "") {
    std::string text =
        sharedKernel(before + "if lt(b, 2) {\n" + then + "} else {\n" + otherwise + "}\n" + behind);
    text.replace(text.find("phase ()"), 8, "phase (b: 3)");
    return allocated(text).sharedBytes;
  };
  const std::string each = kWriteS + kReadS + writeT + readT;
  CHECK(bytes(each, each + readT, "") == 128);
  CHECK(bytes(each, writeT + readT + kWriteS + kReadS, "") == 128);
  // What the branches leave behind lives to the end of each.
  CHECK(bytes(kWriteS + writeT + readT, kWriteS, kReadS) == 256);
  CHECK(bytes(writeT + readT + kWriteS, kWriteS, kReadS) == 128);
  const std::string part = "unit u in 2 { lane l in 4 { %s[i*8 + u*4 + l] = %x[u*4 + l] } }\n";
  CHECK(bytes("seq i in 3 {\n" + writeT + readT + part + "}\n", kWriteS, kReadS) == 256);
  CHECK(bytes("if lt(b, 1) {\n" + kWriteS + writeT + readT + "} else {\n" + kWriteS + "}\n",
              kWriteS, kReadS) == 256);
  // One branch reads what stands in front, or what an earlier turn may have written.
  const std::string late = writeT + readT + kReadS + kWriteS;
  CHECK(bytes(each, late, "", kWriteS) == 256);
  CHECK(bytes(each, late, "}\n", "seq i in 3 {\n") == 256);
}

TEST_CASE("a shared buffer lies at a multiple of what it asks for") {
  std::string text =
      sharedKernel(kWriteS + "unit u in 2 { lane l in 4 { %t[u*4 + l] = 1.0 } }\n" + kReadS +
                   "unit u in 2 { lane l in 4 { %y[u*4 + l] = "
                   "%t[floormod(u*4 + l + 4, 8)] } }\n");
  const std::string small = "%t f32[32]";
  text.replace(text.find(small), small.size(), "%t f32[32] align 1024");
  GirKernel kernel = allocated(text);
  INFO(print(kernel));
  CHECK(offset(kernel, "s") == 0);
  CHECK(offset(kernel, "t") == 1024);
  CHECK(kernel.sharedBytes == 1024 + 128);
  CHECK(sharedAlignment(kernel) == 1024);
  CHECK(sharedAlignment(allocated(sharedKernel(kWriteS + kReadS))) == 128);
  CHECK(print(kernel).find("shared %t f32[32] align 1024 at 1024\n") != std::string::npos);
  CHECK(print(kernelFrom(print(kernel))) == print(kernel));
}

TEST_CASE("phases use the shared memory up to the end of their last buffer") {
  GirKernel kernel = allocated("kernel @k units 1 lanes 4 {\n  param %x f32[8]\n"
                               "  param out %y f32[8]\n"
                               "  shared %s f32[100]\n  shared %t f32[40]\n"
                               "  phase () { lane l in 4 { %s[l] = 1.0 }\n"
                               "    lane l in 4 { %t[l] = 1.0 }\n"
                               "    lane l in 4 { %y[l] = add(%s[l*-1 + 3], %t[l*-1 + 3]) } }\n"
                               "  phase () { lane l in 4 { %y[l + 4] = %x[l] } }\n"
                               "  phase () { lane l in 4 { %t[l] = %x[l] }\n"
                               "    lane l in 4 { %y[l] = %t[l*-1 + 3] } }\n}\n");
  INFO(print(kernel));
  REQUIRE(offset(kernel, "t") == 512);
  CHECK(kernel.sharedBytes == 512 + 160);
  const std::span<const Phase> phases = kernel.phases;
  CHECK(sharedBytesOf(kernel, phases) == kernel.sharedBytes);
  CHECK(sharedBytesOf(kernel, phases.subspan(0, 1)) == kernel.sharedBytes);
  CHECK(sharedBytesOf(kernel, phases.subspan(1, 1)) == 0);
  CHECK(sharedBytesOf(kernel, phases.subspan(2, 1)) == kernel.sharedBytes); // where %t lies
}

TEST_CASE("buffers of random kernels that are live together never overlap") {
  // Straight-line kernels: write buffer a, later read it. Live ranges are then known exactly.
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    int buffers = 2 + static_cast<int>(random() % 6), steps = 3 * buffers;
    std::string head = "kernel @k units 2 lanes 4 {\n  param out %y f32[64]\n  register %r f32[]\n",
                body;
    std::vector<int> first(buffers, -1), last(buffers, -1);
    std::vector<int64_t> sizes(buffers);
    for (int b = 0; b < buffers; ++b) {
      sizes[b] = 8 + static_cast<int64_t>(random() % 100);
      head += "  shared %s" + std::to_string(b) + " f32[" + std::to_string(sizes[b]) + "]\n";
    }
    for (int i = 0; i < steps; ++i) {
      int b = static_cast<int>(random() % static_cast<unsigned>(buffers));
      std::string element = "%s" + std::to_string(b) + "[u*4 + l]";
      body += "unit u in 2 { lane l in 4 { " +
              (first[b] < 0 ? element + " = 1.0" : "%y[u*4 + l] = " + element) + " } }\n";
      first[b] = first[b] < 0 ? i : first[b];
      last[b] = i;
    }
    GirKernel kernel = allocated(head + "  phase () {\n" + body + "  }\n}\n");
    auto at = [&](int b) { return offset(kernel, "s" + std::to_string(b)); };
    for (int a = 0; a < buffers; ++a)
      for (int b = a + 1; b < buffers; ++b) {
        if (first[a] < 0 || first[b] < 0 || last[a] < first[b] || last[b] < first[a])
          continue;
        INFO("seed " << seed << " buffers " << a << " and " << b);
        CHECK((at(a) + sizes[a] * 4 <= at(b) || at(b) + sizes[b] * 4 <= at(a)));
        CHECK(at(a) % 128 == 0);
      }
  }
}

TEST_CASE("simplify drops known predicates, single iterations and dead buffers") {
  GirKernel kernel =
      kernelFrom(sharedKernel("seq i in 1 {\n"
                              "  if le(i*8 + 8, 8) { %y[i] = 1.0 } else { %y[i] = 2.0 }\n"
                              "  %t[0] = 3.0\n"
                              "}\n"
                              "seq j in 0 { %y[j] = 4.0 }\n"
                              "seq k in 4 { if lt(k, 0) { %y[k] = 5.0 } }\n"));
  simplify(kernel);
  CHECK(print(kernel) == "kernel @k units 2 lanes 4 {\n"
                         "  param %x f32[64]\n"
                         "  param out %y f32[64]\n"
                         "  phase () {\n"
                         "    %y[0] = 1.0\n"
                         "  }\n"
                         "}\n");
}

TEST_CASE("registers are counted a lane") {
  CHECK(registersPerLane(kernelFrom(kStagedMatmul)) == 8);
}

// What the rules of rewriting (merge-reads and the others) do and refuse: the bits stay, and nothing is moved twice.
#include "Kernels.h"

#include "Gir/Rewrite.h"
#include "Gir/Traffic.h"
#include "Gir/Walk.h"
#include "Reference/GirInterpreter.h"

#include <cstring>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr RewriteLimits kRoom{127, 48 << 10};

int count(const std::string &text, const std::string &what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

/// Contents of all parameters after a run with barriers and Shared memory as the driver makes them. Symbols: n = 100.
std::vector<std::vector<uint8_t>> outputsOf(GirKernel kernel) {
  insertSyncs(kernel);
  allocate(kernel);
  auto valid = verify(kernel);
  if (!valid.ok())
    FAIL(format(valid.errors().front()) + "\n" + print(kernel));
  const std::vector<int64_t> symbols(kernel.symbols.size(), 100);
  std::vector<std::vector<uint8_t>> memory;
  std::vector<GirArgument> arguments;
  for (int i = 0; i < kernel.numParams(); ++i) {
    const GirBuffer &b = kernel.buffers[static_cast<size_t>(i)];
    const int64_t elements = *numElements(b.shape).evaluate(symbols);
    memory.emplace_back(static_cast<size_t>(elements * sizeInBytes(b.type)));
    for (int64_t e = 0; b.type == DType::F32 && e < elements; ++e) {
      const float v = static_cast<float>((e * 37 + i * 11) % 101 - 50) / 16;
      std::memcpy(&memory.back()[static_cast<size_t>(e * 4)], &v, 4);
    }
  }
  for (auto &m : memory)
    arguments.push_back({m.data(), static_cast<int64_t>(m.size())});
  auto status = run(kernel, arguments, symbols);
  if (!status.ok())
    FAIL(format(status.errors().front()) + "\n" + print(kernel));
  for (int i = 0; i < kernel.numParams(); ++i)
    if (kernel.buffers[static_cast<size_t>(i)].scratch)
      memory[static_cast<size_t>(i)].clear(); // nobody looks
  return memory;
}

/// The kernel after `rewrite`, which gives the same bits and moves no more; twice gives what once gives.
GirKernel rewritten(const std::string &text, const RewriteLimits &limits = kRoom) {
  GirKernel kernel = kernelFrom(text);
  simplify(kernel);
  const ElementTraffic before = globalTraffic(kernel);
  const auto expected = outputsOf(kernel);
  rewrite(kernel, limits);
  const std::string once = print(kernel);
  INFO(once);
  CHECK(isMonotone(before, globalTraffic(kernel)));
  CHECK(outputsOf(kernel) == expected);
  rewrite(kernel, limits);
  CHECK(print(kernel) == once);
  return kernel;
}

bool isUnchanged(const std::string &text, const RewriteLimits &limits = kRoom) {
  GirKernel before = kernelFrom(text);
  simplify(before);
  return print(rewritten(text, limits)) == print(before);
}

/// Two nests of 2 units of 4 lanes, and what stands between and around.
std::string kernelWith(const std::string &body) {
  return "kernel @k units 2 lanes 4 {\n  symbol n = 1..256 opt 100 divisor 1\n  param %x f32[256]\n"
         "  param out %y f32[256]\n  param out %z f32[256]\n  register %r f32[]\n"
         "  shared %s f32[64]\n  phase () {\n" +
         body + "  }\n}\n";
}

std::string nest(const std::string &statement, const std::string &trip = "8") {
  return "seq i in " + trip + " { unit u in 2 { lane l in 4 { " + statement + " } } }\n";
}

const std::string kAt = "i*8 + u*4 + l";
const std::string kReadTwice = nest("%y[" + kAt + "] = add(%x[" + kAt + "], 1.0)") +
                               nest("%z[" + kAt + "] = mul(%x[" + kAt + "], 2.0)");

} // namespace

TEST_CASE("elements that a thread goes through twice are read once") {
  GirKernel kernel = rewritten(kernelWith(kReadTwice));
  CHECK(globalTraffic(kernel).read == 64);
  CHECK(globalTraffic(kernel).written == 128);
  CHECK(count(print(kernel), "unroll i in 8") == 2);
  CHECK(registersPerLane(kernel) == 8);
}

TEST_CASE("traffic is counted by elements, trips and symbols") {
  const ElementTraffic traffic = globalTraffic(kernelFrom(kernelWith(kReadTwice)));
  CHECK(traffic.read == 128);
  CHECK(traffic.written == 128);
  CHECK(globalTraffic(kernelFrom(kElementwise)).read == 13 * 8); // n = 100
  const ElementTraffic sums = globalTraffic(kernelFrom(kRowSum));
  CHECK(sums.read == 3 * 2 * 4 * 32);
  CHECK(sums.written == 6);
  CHECK(globalTraffic(kernelFrom(kernelWith(nest("%y[" + kAt + "] sum= 1.0")))).read == 64);
  CHECK(isMonotone({2, 2}, {2, 1}));
  CHECK_FALSE(isMonotone({2, 2}, {3, 1}));
  CHECK_FALSE(isMonotone({2, 2}, {1, 3}));
}

TEST_CASE("without room everything is read again") {
  CHECK(isUnchanged(kernelWith(kReadTwice), {}));
  CHECK(isUnchanged(kernelWith(kReadTwice), {7, 100}));
}

TEST_CASE("registers that hold other values at the time leave less room") {
  const std::string sums = "unroll a in 8 { lane l in 4 { %acc[a] = %x[128 + l] } }\n",
                    out = "unroll a in 8 { lane l in 4 { %y[64 + a*4 + l] = %acc[a] } }\n";
  auto with = [&](const std::string &body) {
    std::string text = kernelWith(body);
    return text.insert(text.find("  shared"), "  register %acc f32[8]\n");
  };
  const RewriteLimits room{15, 0};
  CHECK(globalTraffic(rewritten(with(sums + kReadTwice + out), room)).read == 128 + 32);
  CHECK(globalTraffic(rewritten(with(sums + out + kReadTwice), room)).read == 64 + 32);
}

TEST_CASE("what fits no registers waits in shared memory that needs no barrier") {
  GirKernel kernel = rewritten(kernelWith(kReadTwice), {7, 256});
  CHECK(globalTraffic(kernel).read == 64);
  allocate(kernel);
  CHECK(kernel.sharedBytes == 256);
  insertSyncs(kernel);
  CHECK(count(print(kernel), "sync") == 0);
  // The trip of a row of unknown length is no number of registers.
  const std::string trip = "dim(floordiv(n + 7, 8))", in = "if lt(" + kAt + ", dim(n)) { ";
  kernel = rewritten(kernelWith(nest(in + "%y[" + kAt + "] = %x[" + kAt + "] }", trip) +
                                nest(in + "%z[" + kAt + "] = %x[" + kAt + "] }", trip)));
  CHECK(globalTraffic(kernel).read == 104);
  CHECK(count(print(kernel), "shared %x.kept f32[256]") == 1);
}

TEST_CASE("a thread keeps what it read under a condition for the places with the same one") {
  const std::string in = "if lt(" + kAt + ", 60) { ", narrower = "if lt(" + kAt + ", 50) { ";
  const std::string first = nest(in + "%y[" + kAt + "] = %x[" + kAt + "] }");
  GirKernel kernel =
      rewritten(kernelWith(first + nest(in + narrower + "%z[" + kAt + "] = %x[" + kAt + "] } }")));
  CHECK(globalTraffic(kernel).read == 64);
  CHECK(isUnchanged(kernelWith(first + nest("%z[" + kAt + "] = %x[" + kAt + "]"))));
  CHECK(isUnchanged(kernelWith(first + nest(in + "} else { %z[" + kAt + "] = %x[" + kAt + "] }"))));
}

TEST_CASE("both branches of a ragged row have the same registers") {
  const std::string both =
      "seq i in 8 { if lt(i, 7) { unit u in 2 { lane l in 4 { %O[i*8 + u*4 + l] = %x[i*8 + u*4 + "
      "l] } } }"
      " else { unit u in 2 { lane l in 4 { if lt(u*4 + l, 5) { %O[i*8 + u*4 + l] = "
      "%x[i*8 + u*4 + l] } } } } }\n";
  auto to = [&](const std::string &out) {
    std::string text = both;
    for (size_t at = text.find("%O"); at != std::string::npos; at = text.find("%O"))
      text.replace(at, 2, out);
    return text;
  };
  GirKernel kernel = rewritten(kernelWith(to("%y") + to("%z")), {8, 0});
  CHECK(registersPerLane(kernel) == 8);
  CHECK(globalTraffic(kernel).read == 128); // of both branches
}

TEST_CASE("reads are not merged where loops, threads or the memory differ") {
  const std::string first = nest("%y[" + kAt + "] = %x[" + kAt + "]");
  CHECK(isUnchanged(kernelWith(first + nest("%z[" + kAt + "] = %x[" + kAt + "]", "7"))));
  CHECK(isUnchanged(kernelWith(first + nest("%z[" + kAt + "] = %x[i*8 + l*2 + u]"))));
  CHECK(isUnchanged(kernelWith(first + nest("%z[" + kAt + "] = %x[" + kAt + " + 1]"))));
  // A store between the reads, by whatever thread.
  const std::string read = "%r[] = add(%r[], %y[" + kAt + "])";
  CHECK(isUnchanged(kernelWith("%r[] = 0.0\n" + nest(read) + "%y[5] = 1.0\n" + nest(read) +
                               "lane l in 4 { %z[l] = %r[] }\n")));
  CHECK_FALSE(isUnchanged(kernelWith("%r[] = 0.0\n" + nest(read) + nest(read) +
                                     "%y[5] = 1.0\nlane l in 4 { %z[l] = %r[] }\n")));
}

TEST_CASE("what a thread stores and reads back stays in a register") {
  const std::string write = nest("%s[" + kAt + "] = mul(%x[" + kAt + "], 2.0)");
  GirKernel kernel = rewritten(kernelWith(write + nest("%y[" + kAt + "] = %s[" + kAt + "]")));
  CHECK(count(print(kernel), "shared") == 0);
  insertSyncs(kernel);
  CHECK(count(print(kernel), "sync") == 0);
  // A parameter keeps its store: somebody else may read it.
  kernel = rewritten(kernelWith(nest("%z[" + kAt + "] = mul(%x[" + kAt + "], 2.0)") +
                                nest("%y[" + kAt + "] = %z[" + kAt + "]")));
  CHECK(globalTraffic(kernel).read == 64);
  CHECK(globalTraffic(kernel).written == 128);
}

TEST_CASE("stores are not forwarded to other threads, past other stores, or where they overwrite "
          "each other") {
  const std::string write = nest("%s[" + kAt + "] = mul(%x[" + kAt + "], 2.0)");
  const std::string read = nest("%y[" + kAt + "] = %s[" + kAt + "]");
  CHECK(isUnchanged(kernelWith(write + nest("%y[" + kAt + "] = %s[i*8 + l*2 + u]"))));
  CHECK(isUnchanged(kernelWith(write + "%s[3] = 1.0\n" + read)));
  CHECK(isUnchanged(kernelWith(write + read + "%z[0] = %s[1]\n"))); // the buffer stays anyway
  // Each iteration overwrites the one before; the next nest reads the last one's elements.
  CHECK(isUnchanged(
      kernelWith(nest("%s[u*4 + l] = %x[" + kAt + "]") + nest("%y[" + kAt + "] = %s[u*4 + l]"))));
  // Iterations overlap: element 4 + l is written for i = 0 by unit 1 and for i = 1 by unit 0.
  CHECK(isUnchanged(kernelWith("seq i in 2 { unit u in 2 { lane l in 4 { %s[i*4 + u*4 + l] = "
                               "%x[" +
                               kAt +
                               "] } } sync block }\n"
                               "seq i in 2 { unit u in 2 { lane l in 4 { %y[" +
                               kAt + "] = %s[i*4 + u*4 + l] } } }\n")));
}

TEST_CASE("what one thread stores for the block is known to all whose units agree on it") {
  const std::string sums = "%r[] = 0.0\nunit u in 2 { lane l in 4 { %r[] sum= %x[u*4 + l] } "
                           "lanereduce sum %r[] %s[u] = %r[] }\n";
  const std::string uses = nest("%z[" + kAt + "] = %y[0]");
  GirKernel kernel = rewritten(
      kernelWith(sums + "%r[] = 0.0\nseq f in 2 { %r[] sum= %s[f] }\n%y[0] = %r[]\n" + uses));
  CHECK(globalTraffic(kernel).read == 8);
  // Each unit has a sum of its own; the first one's is stored.
  CHECK(isUnchanged(kernelWith(sums + "%y[0] = %r[]\n" + uses)));
}

TEST_CASE("dear values are computed once, products under a sum stay what they are") {
  const std::string value = "exp(sub(%x[" + kAt + "], %r[]))";
  const std::string two = nest("%y[" + kAt + "] = " + value) + "SET" +
                          nest("%z[" + kAt + "] = add(" + value + ", 1.0)");
  auto with = [&](const std::string &between) {
    std::string text = two;
    return kernelWith("%r[] = 1.0\n" + text.replace(text.find("SET"), 3, between));
  };
  CHECK(count(print(rewritten(with(""))), "exp") == 1);
  CHECK(count(print(rewritten(with("%r[] = 2.0\n"))), "exp") == 2);
  // Outside Lane loops all lanes compute with the first one's register.
  CHECK(count(print(rewritten(kernelWith("unit u in 2 { lane l in 4 { %r[] = %x[u*4 + l] }\n"
                                         "%y[u] = exp(%r[])\n"
                                         "lane l in 4 { %z[u*4 + l] = exp(%r[]) } }\n"))),
              "exp") == 2);
  const std::string product = "mul(exp(%x[" + kAt + "]), exp(%x[" + kAt + " + 64]))";
  GirKernel kernel = rewritten(
      kernelWith(nest("%y[" + kAt + "] = " + product) + nest("%z[" + kAt + "] sum= " + product)));
  CHECK(count(print(kernel), "mul(") == 2);
  CHECK(count(print(kernel), "exp(") == 2);
}

namespace {

/// 256 elements through scratch memory: stored by one phase as `value`, read by the next one, with rows and columns
/// exchanged, as `result`.
std::string throughScratch(const std::string &value, const std::string &result,
                           const std::string &index = "b*8 + l") {
  return "kernel @k units 1 lanes 8 {\n  param %x f32[256]\n  param scratch %t f32[256]\n"
         "  param out %y f32[256]\n"
         "  phase (b: 32) { lane l in 8 { %t[" +
         index + "] = " + value +
         " } }\n"
         "  phase (c: 8) { seq j in 4 { lane m in 8 { %y[c*32 + j*8 + m] " +
         result + " } } }\n}\n";
}

const std::string kThere = "%t[j*64 + m*8 + c]";

} // namespace

TEST_CASE(
    "four accesses to device memory become two where a computation steps behind the scratch") {
  const std::string text = throughScratch("max(%x[b*8 + l], 0.0)", "= " + kThere);
  const ElementTraffic before = globalTraffic(kernelFrom(text));
  CHECK(before.read == 2 * 256);
  CHECK(before.written == 2 * 256);
  GirKernel kernel = rewritten(text);
  CHECK(globalTraffic(kernel).read == 256);
  CHECK(globalTraffic(kernel).written == 256);
  CHECK(kernel.phases.size() == 1);
  CHECK(dropUnusedScratch(kernel) == std::vector<bool>{true, false, true});
  CHECK(kernel.numParams() == 2);
  // A move alone needs no step; an element may be read from a place that data or a division gives.
  CHECK(rewritten(throughScratch("%x[b*8 + l]", "= sub(%t[floordiv(c*32 + j*8 + m, 2)], 1.0)"))
            .phases.size() == 1);
}

TEST_CASE("values stay in scratch memory where another way is more work or not known") {
  const std::string value = "max(%x[b*8 + l], 0.0)";
  // Each element is read and would be computed twice.
  CHECK(isUnchanged(throughScratch(value, "= add(" + kThere + ", %t[c*32 + j*8 + m])")));
  // A product under a sum is rounded with it.
  CHECK(isUnchanged(throughScratch("mul(%x[b*8 + l], 3.0)", "sum= " + kThere)));
  // More than one element of memory, or the place itself, goes into the value.
  CHECK(isUnchanged(throughScratch("add(%x[b*8 + l], %x[0])", "= " + kThere)));
  CHECK(isUnchanged(throughScratch("mul(%x[b*8 + l], cast(f32, l))", "= " + kThere)));
  // Which block stored an element cannot be told from its index.
  CHECK(isUnchanged(throughScratch("max(%x[floordiv(b, 2)*8 + l], 0.0)", "= " + kThere,
                                   "floormod(b*3, 32)*8 + l")));
  CHECK(isUnchanged(throughScratch(value, "= if(lt(m, 4), " + kThere + ", 0.0)")));
  // Not scratch: somebody else may want to see it.
  std::string seen = throughScratch(value, "= " + kThere);
  CHECK(isUnchanged(seen.replace(seen.find("scratch"), 7, "out")));
}

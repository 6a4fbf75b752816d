// GPU kernels as the Sim device runs them: lanes are threads, every access is announced, and the results have the
// interpreter's bits. Each GPU thread is a thread here, which is slow and needs nothing of the runtime.
#include "Harness.h"

#include "fusec/bundle_format.h"

#include <atomic>
#include <barrier>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace fusec;
using namespace fusec::test;

namespace {

struct Machine {
  Machine(const GirKernel &kernel, int units, int lanes)
      : lanes(lanes), block(units * lanes), slots(units * lanes) {
    for (int u = 0; u < units; ++u)
      unit.push_back(std::make_unique<std::barrier<>>(lanes));
    (void)kernel;
  }
  int lanes;
  std::barrier<> block;
  std::vector<std::unique_ptr<std::barrier<>>> unit;
  std::vector<uint64_t> slots;
  std::atomic<int64_t> reads = 0, writes = 0, blockSyncs = 0, outside = 0;
  std::vector<std::pair<const uint8_t *, const uint8_t *>>
      ranges; // of the parameters, then shared memory
};
struct Thread : fusec_sim_thread {
  Machine *machine;
};
Machine &machineOf(fusec_sim_thread *t) { return *static_cast<Thread *>(t)->machine; }
std::barrier<> &unitOf(fusec_sim_thread *t) {
  return *machineOf(t).unit[t->thread / machineOf(t).lanes];
}

const fusec_sim_hooks kHooks = {
    sizeof(fusec_sim_hooks),
    0,
    [](fusec_sim_thread *t, const void *address, int32_t bytes, int32_t flags, int32_t param,
       int64_t, int32_t) {
      Machine &m = machineOf(t);
      m.reads += (flags & FUSEC_SIM_READ) != 0;
      m.writes += (flags & FUSEC_SIM_WRITE) != 0;
      auto [begin, end] = param >= 0 ? m.ranges[param] : m.ranges.back();
      auto *p = static_cast<const uint8_t *>(address);
      m.outside += p < begin || p + bytes > end;
    },
    [](fusec_sim_thread *t, int32_t) {
      machineOf(t).blockSyncs++;
      machineOf(t).block.arrive_and_wait();
    },
    [](fusec_sim_thread *t, int32_t) { unitOf(t).arrive_and_wait(); },
    [](fusec_sim_thread *t, uint64_t bits, int32_t laneMask, int32_t) {
      Machine &m = machineOf(t);
      m.slots[t->thread] = bits;
      unitOf(t).arrive_and_wait();
      uint64_t other = m.slots[t->thread ^ laneMask];
      unitOf(t).arrive_and_wait();
      return other;
    },
    [](fusec_sim_thread *, int32_t, int32_t) {},
    [](fusec_sim_thread *, int32_t) {},
    [](fusec_sim_thread *, int32_t, int64_t, int32_t) {},
    // Blocks run here one after the other: a kernel that waits for others is none of these.
    [](fusec_sim_thread *, int64_t, int32_t) { std::abort(); },
    [](fusec_sim_thread *, int64_t, int64_t, int64_t, int32_t) { std::abort(); },
};

struct Counts {
  int64_t reads, writes, blockSyncs;
};

Counts requireSimBits(const GirKernel &kernel, const std::string &targetName,
                      const std::vector<Bytes> &arguments,
                      const std::vector<int64_t> &symbols = {}) {
  std::vector<Bytes> expected = arguments, actual = arguments;
  runInterpreted(kernel, expected, symbols);
  auto images = compileKernels({kernel}, targetNamed(targetName), {});
  if (!images.ok())
    FAIL(format(images.errors().front()));
  REQUIRE(images->front().format == CodeImage::Format::SimElf);
  LoadedImage image(images->front().bytes);
  auto code = kernelCodes({kernel}, targetNamed(targetName)).front();
  std::vector<void *> buffers;
  std::vector<uint8_t> shared(code.sharedBytes + 64);
  Machine machine(kernel, kernel.units, kernel.lanes);
  for (Bytes &a : actual) {
    buffers.push_back(a.data());
    machine.ranges.emplace_back(a.data(), a.data() + a.size());
  }
  machine.ranges.emplace_back(shared.data(), shared.data() + code.sharedBytes);
  std::vector<int64_t> dims;
  for (SymbolId s : kernel.usedSymbols())
    dims.push_back(symbols[s]);
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    auto entry =
        reinterpret_cast<fusec_sim_kernel>(image.symbol(code.symbol + "_p" + std::to_string(p)));
    for (int64_t block = 0, grid = *gridSize(kernel.phases[p]).evaluate(symbols); block < grid;
         ++block) {
      std::vector<std::thread> threads;
      for (int32_t i = 0; i < kernel.units * kernel.lanes; ++i)
        threads.emplace_back([&, i] {
          Thread t;
          static_cast<fusec_sim_thread &>(t) = {
              &kHooks, buffers.data(), dims.data(), shared.data(), block, i, 0, 0};
          t.machine = &machine;
          entry(&t);
        });
      for (std::thread &t : threads)
        t.join();
    }
  }
  CHECK(machine.outside == 0);
  CHECK(actual == expected);
  return {machine.reads, machine.writes, machine.blockSyncs};
}

std::string rowSum(int lanes) {
  const std::string l = std::to_string(lanes);
  return "kernel @rowsum units 2 lanes " + l + R"( {
  param %x f32[6,100]
  param out %y f32[6]
  register %acc f32[]
  register %other f32[]
  phase (b: 3) {
    unit u in 2 {
      %acc[] = 0.0
      seq c in 4 {
        lane l in )" +
         l + R"( {
          if lt(c*)" +
         l + R"( + l, 100) {
            %acc[] sum= %x[b*2 + u, c*)" +
         l + R"( + l]
          }
        }
      }
      lane l in )" +
         l + R"( {
        %other[] = %acc[]
      }
      exchange %other[] xor 2
      lane l in )" +
         l + R"( {
        %acc[] = sub(%acc[], mul(%other[], 0.5))
      }
      lanereduce sum %acc[]
      %y[b*2 + u] = exp(mul(%acc[], 0.125))
    }
  }
}
)";
}

const char *const kStaged = R"(kernel @mm units 4 lanes 32 {
  param %a f32[64,48]
  param %b f32[48,32]
  param out %c f32[64,32]
  register %acc f32[8]
  shared %as f32[32,16]
  shared %bs f32[16,32]
  phase (bm: 2) {
    unroll i in 8 {
      %acc[i] = 0.0
    }
    seq k in 3 {
      unit u in 4 {
        seq r in 4 {
          lane l in 32 {
            let t0 = u*8 + r*2 + floordiv(l, 16);
            let t1 = floormod(l, 16);
            %as[t0, t1] = %a[bm*32 + t0, k*16 + t1]
            %bs[u*4 + r, l] = %b[k*16 + u*4 + r, l]
          }
        }
      }
      unit u in 4 {
        seq kk in 16 {
          unroll i in 8 {
            lane l in 32 {
              %acc[i] sum= mul(%as[u*8 + i, kk], %bs[kk, l])
            }
          }
        }
      }
    }
    unit u in 4 {
      unroll i in 8 {
        lane l in 32 {
          %c[bm*32 + u*8 + i, l] = %acc[i]
        }
      }
    }
  }
}
)";

} // namespace

TEST_CASE("row sums of warps and waves", "[codegen][sim]") {
  std::vector<Bytes> arguments = {randomBytes(DType::F32, 600, 1), Bytes(24)};
  Counts warp = requireSimBits(kernelFrom(rowSum(32)), "sim:sm_90", arguments);
  CHECK(warp.reads == 600);
  CHECK(warp.writes == 6); // one lane of each unit
  Counts wave = requireSimBits(kernelFrom(rowSum(64)), "sim:gfx90a", arguments);
  CHECK(wave.reads == 600);
  CHECK(wave.writes == 6);
}

TEST_CASE("extremes of a result and a number", "[codegen][sim]") {
  const std::string type = GENERATE("f32", "f64", "f16");
  const std::string operand = GENERATE("X", "neg(X)", "abs(X)", "neg(abs(X))", "sqrt(X)",
                                       "sub(1.0, X)", "mul(X, X)", "max(X, neg(X))");
  std::string params, body;
  std::vector<Bytes> arguments = {randomBytes(*parseDType(type), 64, 4, true)};
  for (const char *op : {"max", "min"})
    for (const char *number : {"0.0", "-0.0", "1.0", "-1.0", "inf", "-inf", "nan"})
      for (const bool first : {false, true}) {
        const std::string y = "%y" + std::to_string(arguments.size());
        params += "param out " + y + " " + type + "[64]\n";
        body += y + "[u*32 + l] = " + op + "(" +
                (first ? number + (", " + operand) : operand + ", " + number) + ")\n";
        arguments.push_back(Bytes(64 * sizeInBytes(*parseDType(type))));
      }
  for (size_t at; (at = body.find('X')) != std::string::npos;)
    body.replace(at, 1, "%x[u*32 + l]");
  INFO(type << " " << operand);
  requireSimBits(kernelFrom("kernel @extremes units 2 lanes 32 {\nparam %x " + type + "[64]\n" +
                            params + "phase () {\nunit u in 2 {\nlane l in 32 {\n" + body +
                            "}\n}\n}\n}\n"),
                 "sim:sm_80", arguments);
}

TEST_CASE("a product staged through shared memory", "[codegen][sim]") {
  std::vector<Bytes> arguments = {randomBytes(DType::F32, 64 * 48, 2),
                                  randomBytes(DType::F32, 48 * 32, 3), Bytes(64 * 32 * 4)};
  Counts counts = requireSimBits(kernelFrom(kStaged), "sim:sm_90", arguments);
  CHECK(counts.blockSyncs > 0);
  CHECK(counts.writes == 2 * 3 * (32 * 16 * 2) + 64 * 32); // the staged tiles and the result
}

TEST_CASE("phases, symbols and stores by one thread", "[codegen][sim]") {
  GirKernel kernel = kernelFrom(R"(kernel @two units 2 lanes 32 {
    symbol n = 1..4096 opt 100 divisor 1
    param %x f16[n]
    param out %t f32[n]
    param out %y f64[1]
    register uniform %acc f32[]
    phase (b: floordiv(n + 63, 64)) {
      unit u in 2 {
        lane l in 32 {
          if lt(b*64 + u*32 + l, dim(n)) {
            %t[b*64 + u*32 + l] = cast(f32, if(lt(1, b*64 + u*32 + l), %x[b*64 + u*32 + l - 2], 0.5))
          }
        }
      }
    }
    phase () {
      %acc[] = 0.0
      seq i in dim(n) {
        %acc[] sum= %t[i]
      }
      %y[0] = cast(f64, %acc[])
    }
  })",
                                {{"n", 1, 100, 4096, 1}});
  std::vector<Bytes> arguments = {randomBytes(DType::F16, 130, 4), Bytes(130 * 4), Bytes(8)};
  Counts counts = requireSimBits(kernel, "sim:sm_90", arguments, {130});
  CHECK(counts.writes == 130 + 1);
}

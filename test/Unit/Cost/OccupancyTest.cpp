// Blocks resident at once: published and calculated counts, and what must hold for any kernel.
#include "Cost/Occupancy.h"

#include <catch2/catch_all.hpp>

#include <random>

using namespace fusec;
using namespace fusec::cost;

namespace {

/// Volta has no table of its own (no code is made for it): what CUDA's occupancy calculator has for sm_70.
Target v100() {
  Target t = *lookupTarget("a100");
  t.cores = 80;
  t.sharedReservedBytes = 0;
  t.sharedGranuleBytes = 256;
  t.memory.front().capacityBytes = 96 << 10;
  return t;
}

} // namespace

TEST_CASE("Ten LSTM layers of 32 blocks wait for each other on an A100 or H200, not on a V100") {
  // 256 threads of 80 registers; a block keeps 48 KiB of weights in shared memory.
  constexpr int64_t kBlocks = 10 * 32;
  auto resident = [](const Target &t) { return residentBlocks(t, 80, 48 << 10, 256); };
  CHECK(resident(*lookupTarget("a100")) == 324);
  CHECK(resident(v100()) == 160);
  CHECK(resident(*lookupTarget("h200")) == 396);
  CHECK(resident(*lookupTarget("a100")) >= kBlocks);
  CHECK(resident(v100()) < kBlocks);
}

TEST_CASE("Each limit alone decides where the others leave room") {
  const Target a100 = *lookupTarget("a100");
  // Threads: 2048 an SM. Slots: 32 blocks of one warp.
  CHECK(residentBlocksPerCore(a100, 32, 0, 1024) == 2);
  CHECK(residentBlocksPerCore(a100, 16, 0, 32) == 32);
  // A warp of 33 registers takes 40 x 32: 12 warps a scheduler, 48 in all.
  CHECK(residentBlocksPerCore(a100, 33, 0, 128) == 12);
  CHECK(residentBlocksPerCore(a100, 255, 0, 256) == 1);
  CHECK(residentBlocksPerCore(a100, 255, 0, 1024) == 0);
  // 164 KiB less 1 KiB a block.
  CHECK(residentBlocksPerCore(a100, 32, 81 << 10, 128) == 2);
  CHECK(residentBlocksPerCore(a100, 32, (81 << 10) + 1, 128) == 1);
  CHECK(residentBlocksPerCore(a100, 32, 164 << 10, 128) == 0);

  const Target mi250 = *lookupTarget("mi250");
  // 512 registers a lane of each SIMD, eight waves at most: AMDGPUUsage, "Accumulation VGPRs" shared by both kinds.
  CHECK(residentBlocksPerCore(mi250, 64, 0, 256) == 8);
  CHECK(residentBlocksPerCore(mi250, 65, 0, 256) == 7);
  CHECK(residentBlocksPerCore(mi250, 128, 0, 256) == 4);
  CHECK(residentBlocksPerCore(mi250, 129, 0, 256) == 3);
  CHECK(residentBlocksPerCore(mi250, 32, 20 << 10, 256) == 3);
  const Target rx7900 = *lookupTarget("rx7900");
  CHECK(residentBlocksPerCore(rx7900, 96, 0, 64) == 16);
  CHECK(residentBlocksPerCore(rx7900, 97, 0, 64) == 12);
}

TEST_CASE("A block that asks for more never leaves room for more") {
  std::mt19937 random(1);
  for (const std::string &name : targetNames()) {
    const Target t = *lookupTarget(name);
    INFO(name);
    for (int round = 0; round < 1000; ++round) {
      const int64_t registers = random() % 256, shared = random() % (64 << 10);
      const int64_t threads = t.lanes * (1 + static_cast<int64_t>(random()) % t.maxUnits);
      const int64_t blocks = residentBlocks(t, registers, shared, threads);
      CHECK(residentBlocks(t, registers + 1, shared, threads) <= blocks);
      CHECK(residentBlocks(t, registers, shared + 1, threads) <= blocks);
      CHECK(residentBlocks(t, registers, shared, threads + 1) <= blocks);
      CHECK(blocks == t.cores * residentBlocksPerCore(t, registers, shared, threads));
      if (t.kind == TargetKind::Cpu)
        CHECK(blocks == t.cores);
    }
  }
}

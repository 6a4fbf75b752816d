// AMD architectures. Sources: CDNA2, CDNA3 and RDNA3 instruction set manuals (wave size, registers, LDS); LLVM's
// AMDGPUUsage and its AMDGPU::IsaInfo (waves and registers of a SIMD, granules, work-groups); data sheets of MI250X
// (one GCD), MI300X and RX 7900 XTX (compute units, caches, bandwidth, fp32 rate).
#include "Target/Tables.h"

namespace fusec {

namespace {

/// What differs between a CU of one architecture and another.
struct Core {
  int schedulers;          // SIMDs
  int64_t registersOfLane; // of one SIMD
  int wavesOfScheduler;    // at most
  int64_t registerGranule; // registers of a lane come in multiples of this
  int workGroups;          // of several waves each, at most
};
constexpr Core kCdna{4, 512, 8, 8, 16}, kRdna3{2, 1536, 16, 24, 32};

/// Peak of the last cache times what streams reach of such peaks (an A100's L2: 4.5 of 7.2 TB/s).
constexpr double kCacheShare = 0.6;

Target amdTarget(const char *name, int lanes, int cores, const Core &core, double flops,
                 const MemoryLevel &cache, double dramBytesPerSec) {
  Target t;
  t.name = name;
  t.kind = TargetKind::Amd;
  t.triple = "amdgcn-amd-amdhsa";
  t.cpu = name;
  t.lanes = lanes;
  t.vectorRegisters = 256;
  t.maxUnits = 1024 / lanes;
  t.keepsReads = true;
  t.cores = cores;
  t.sharedBytesPerBlock = t.staticSharedBytes = 64 << 10; // all that a work-group may have
  t.registersPerCore = core.schedulers * core.registersOfLane * lanes;
  t.maxThreadsPerCore = core.schedulers * core.wavesOfScheduler * lanes;
  t.maxBlocksPerCore = core.workGroups;
  t.schedulersPerCore = core.schedulers;
  t.registerGranule = core.registerGranule * lanes;
  t.sharedGranuleBytes = 512;
  t.flopsPerSec = flops;
  // An estimate: a CDNA SIMD takes four clocks for a wave, after which its result is there (one wave a SIMD is enough),
  // but LDS and caches take longer.
  t.unitsToFill = 16;
  // 64 bytes a clock from the vector L1 (MI200 performance counters, vL1D): 16 of 64 lanes. RDNA3: 128 bytes, 32 of 128
  // lanes.
  t.loadShare = 0.25;
  // An estimate: somewhat more than NVIDIA's devices.
  t.launchSec = t.ownLaunchSec = 3.0e-6;
  t.blockBarrierSec = 3.0e-8; // an estimate: some 50 cycles
  // 2,048 work-groups that count up one line of memory take 58 us on an MI355X (ROCm/llvm-project, pull request 3464),
  // 28 ns each; here one on each CU counts. Then the last one's release has to be seen: an estimate of two trips to the
  // L2 and back. 4.3 us on a gfx90a, 9.7 us on a gfx942: more than a launch.
  constexpr double kCountSec = 28e-9, kReleaseSec = 1.2e-6;
  t.waitSec = 0.8e-6; // an estimate: an H200's
  t.readsAtOnce = 32; // Codegen unrolls loops to half of what the counter of a wave's reads holds
  t.deviceBarrierSec = cores * kCountSec + kReleaseSec;
  constexpr double kLdsBytesPerClock = 128, kHertz = 1.7e9;
  t.memory = {
      {"shared", 64 << 10, kLdsBytesPerClock * kHertz}, cache, {"dram", 0, dramBytesPerSec, true}};
  return t;
}

} // namespace

std::vector<Target> amdTargets() {
  // L2 of 32 channels, 128 B a clock each; Infinity Caches of the data sheets.
  const MemoryLevel l2{"l2", 8 << 20, kCacheShare * 6.9e12, true};
  const MemoryLevel mi300{"infinity", 256 << 20, kCacheShare * 17.2e12, true};
  const MemoryLevel rx7900{"infinity", 96 << 20, kCacheShare * 3.5e12, true};
  return {amdTarget("gfx90a", 64, 110, kCdna, 23.9e12, l2, 1600e9),
          amdTarget("gfx942", 64, 304, kCdna, 81.7e12, mi300, 5300e9),
          amdTarget("gfx1100", 32, 96, kRdna3, 61.0e12, rx7900, 960e9)};
}

} // namespace fusec

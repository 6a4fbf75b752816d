// NVIDIA architectures. Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"
// (registers, threads, blocks, shared memory: of an SM, of a block, of a block that opts in); CUDA Occupancy Calculator
// (granules; 1 KiB a block reserved since compute capability 8.0); datasheets of A100 SXM4 40 GB, H100 SXM and H200
// (SMs, L2, bandwidth, fp32 rate). What was measured by this project says so; `fusert calibrate` measures most of it on
// a machine that has one.
#include "Target/Tables.h"

namespace fusec {

namespace {

struct Memory {
  int64_t sharedBytes, l2Bytes; // of an SM, of the device
  int64_t dynamicSharedBytes;   // of a block
  double l2BytesPerSec, dramBytesPerSec;
};

Target nvidiaTarget(const char *name, int cores, double flops, const Memory &memory,
                    double launchSec) {
  Target t;
  t.name = name;
  t.kind = TargetKind::Nvidia;
  t.triple = "nvptx64-nvidia-cuda";
  t.cpu = name;
  t.lanes = 32;
  t.vectorRegisters = 255;
  t.maxUnits = 32;
  t.keepsReads = true;
  t.cores = cores;
  t.staticSharedBytes = 48 << 10;
  t.sharedBytesPerBlock = t.dynamicSharedBytes = memory.dynamicSharedBytes;
  t.registersPerCore = 65536;
  t.maxThreadsPerCore = 2048;
  t.maxBlocksPerCore = 32;
  t.schedulersPerCore = 4;
  t.registerGranule = 256;
  t.sharedGranuleBytes = 128;
  t.sharedReservedBytes = 1 << 10;
  t.flopsPerSec = flops;
  // A result is there after four cycles at the earliest, and each scheduler begins an instruction a cycle (Programming
  // Guide, "Multiprocessor Level").
  t.unitsToFill = 4 * t.schedulersPerCore;
  t.loadShare = 0.25; // 32 load/store units beside 128 fp32 lanes (H100 whitepaper)
  t.launchSec = t.ownLaunchSec = launchSec;
  t.blockBarrierSec = 2.0e-8; // an estimate: some 28 cycles
  // cooperative_groups' grid sync on 148 SMs: 1.29 us, 0.96 with a counter of one's own (a public microbenchmark); up
  // to 2.72 us for 160 blocks of 1,024 threads on a V100 (AStitch, ASPLOS 2022).
  t.deviceBarrierSec = 1.3e-6;
  // Measured on an H200: 62 waves of blocks that read and write one element a thread take 51 to 60 us, whatever its
  // type. Attention of 12 heads, 512 x 64, as a tree that stages 64 tiles a block with two blocks an SM takes 104 us,
  // 71 by all other counts; in three phases with 4 and 16 tiles and three to six blocks 85, and 76 by these.
  t.waitSec = 0.8e-6;
  // Measured on an H200: ptxas unrolls loops of one or two reads by four; sums of rows reach what eight give.
  t.readsAtOnce = 8;
  // A barrier made of red and an acquiring loop takes 0.96 us on 148 SMs, 0.3 us of it the fence of the release
  // (microbenchmarks of a Blackwell part at 1.8 GHz); a counter is the same with fewer blocks at it.
  t.signalSec = 0.3e-6;
  t.awaitSec = 0.66e-6;
  constexpr double kSharedBytesPerClock = 128, kHertz = 1.4e9;
  t.memory = {{"shared", memory.sharedBytes, kSharedBytesPerClock * kHertz},
              {"l2", memory.l2Bytes, memory.l2BytesPerSec, true},
              {"dram", 0, memory.dramBytesPerSec, true}};
  return t;
}

} // namespace

std::vector<Target> nvidiaTargets() {
  // From one kernel of a stream to the next: 2 us on an A100 (Souffle, ASPLOS 2024), 2.1 us on an H100, 1.3 us in a
  // CUDA graph (Hazy Research, "Look Ma, No Bubbles!", 2025). L2: of the peak (5,120 bytes a clock, 7.2 TB/s on an
  // A100) what streams reach.
  return {
      nvidiaTarget("sm_80", 108, 19.5e12, {164 << 10, 40 << 20, 163 << 10, 4.5e12, 1555e9}, 2.0e-6),
      nvidiaTarget("sm_90", 132, 60.0e12, {228 << 10, 60 << 20, 227 << 10, 5.5e12, 4800e9},
                   2.1e-6)};
}

} // namespace fusec

#pragma once
#include "Support/Result.h"
#include "Target/MicroKernel.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

enum class TargetKind : uint8_t { Cpu, Nvidia, Amd };

/// One level of memory, from the unit that computes outwards.
struct MemoryLevel {
  std::string name;      // "l1", "l2", "l3", "shared", "dram"
  int64_t capacityBytes; // 0 = unbounded
  double bytesPerSec;
  /// True: all cores share it, and the figures are those of the whole. False: each core or SM has its own.
  bool ofDevice = false;
  /// Lines that a set of the cache holds, which the addresses choose; 0: it is not told, any line may be anywhere.
  int ways = 0;
};

/// What an x86-64 core does, beside the rates and sizes of its memory levels.
struct CpuCore {
  int fmaPorts = 0, loadPorts = 0; // vector operations and loads that issue per cycle
  /// Loads that issue per cycle in an inner loop of products whose operands come from the second cache.
  int tileLoads = 0;
  int fmaCycles = 0;             // latency of a fused multiply-add
  int instructionsAhead = 0;     // size of the out-of-order window
  double panelBytesPerCycle = 0; // bandwidth of the second cache in an inner loop
  double rereadBytesPerSec = 0;  // from beyond a core's own caches, in an inner loop
  int64_t lineBytes = 0, pageBytes = 0;
  int rowsToFill = 0;           // address streams that reach the core's share of memory bandwidth
  int pagesAsked = 1;           // pages of a row whose lines are prefetched in turn
  double oneRowShare = 1;       // fraction of the memory bandwidth with fewer streams
  double severalRowsShare = 1;  // fraction of a cache's bandwidth with that many streams or more
  int64_t elementsPerBlock = 0; // work that outweighs handing a block to another thread
};

/// A compilation target as plain data. Tables in Cpu.cpp, Nvidia.cpp, Amd.cpp name the source of each number.
struct Target {
  std::string name; // as on the command line: "x86-64-v3", "sm_90", "gfx90a", "sim:sm_90"
  TargetKind kind;
  bool sim = false; // run the GPU kernels on the CPU with checks
  /// Lanes are the elements of one thread's vector register (CPU), else threads with registers of their own.
  bool vectorLanes = false;
  /// The first memory level is a cache (CPU), else memory of a block that kernels fill themselves.
  bool nearestIsCache = false;
  /// Threads keep in registers what they have read, also from phase to phase, where kernels say so (GPU).
  bool keepsReads = false;
  std::string triple, cpu, features; // for LLVM
  int lanes;           // f32 elements a vector register (CPU), threads a warp or wave (GPU)
  int vectorRegisters; // CPU: architectural vector registers; GPU: 32-bit registers a thread at most
  int maxUnits;        // warps or waves a block; 1 on a CPU
  int cores;           // SMs or CUs; for a CPU the number that Cost assumes
  int64_t
      sharedBytesPerBlock; // GPU: shared memory that schedules use; CPU: scratch a core (L2 share)
  /// GPU: shared memory that a block may have as static data of its code, and that a launch may give it, which its
  /// kernel has to opt in to; 0: launches give none.
  int64_t staticSharedBytes = 0, dynamicSharedBytes = 0;
  int64_t registersPerCore;    // GPU: 32-bit registers an SM; CPU: 0
  int maxThreadsPerCore;       // GPU
  int maxBlocksPerCore = 1;    // resident at once; on a CPU a core runs one block after the other
  int schedulersPerCore = 1;   // GPU: each has its part of the registers and of the units
  int64_t registerGranule = 1; // GPU: a unit gets registers in multiples of this many
  int64_t sharedGranuleBytes = 1;  // GPU: a block gets shared memory in multiples of this
  int64_t sharedReservedBytes = 0; // GPU: what the system takes of it for each block
  double flopsPerSec;  // fp32 FMA peak of the device (a core's share on a CPU), 2 flop an FMA
  double loadShare;    // vector loads that a core issues in the time of one vector operation
  int unitsToFill = 1; // of a GPU's core, that keep it issuing: each waits for its own results
  CpuCore core;        // CPU
  double launchSec, blockBarrierSec, deviceBarrierSec;
  double waitSec =
      0; // GPU: threads ask memory for something and have it, with nothing to do beside
  double readsAtOnce = 1; // GPU: of a thread, which it has on their way before it waits
  double signalSec = 0,
         awaitSec = 0;     // NVIDIA: a block raises a counter; another one comes to know of it
  double ownLaunchSec = 0; // CPU: of blocks that the calling thread runs itself, all of them
  std::vector<MemoryLevel> memory;
  std::vector<MicroKernel> kernels; // that run on it

  /// The kernel of that name; null where there is none.
  const MicroKernel *kernel(std::string_view wanted) const;
  /// Units side by side share a block's memory and meet at its barriers.
  bool blocksHaveUnits() const { return maxUnits > 1; }
  /// Units of a block of that many threads; 1 where a block is one unit.
  int unitsOf(int threads) const { return blocksHaveUnits() ? threads / lanes : 1; }
  int64_t mostSharedBytes() const { return std::max(staticSharedBytes, dynamicSharedBytes); }
  /// A core runs other units while one waits for its results.
  bool hidesLatency() const { return unitsToFill > 1; }
};

/// Looks a name up. "host" stands for the best x86-64 level of the running machine and comes back under that
/// level's own name. Accepts "sim:" before GPU names and product names ("h200", "a100", "mi300x", "mi250").
Result<Target> lookupTarget(std::string_view name);
std::vector<std::string> targetNames();

} // namespace fusec

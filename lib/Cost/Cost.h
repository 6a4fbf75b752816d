#pragma once
#include "Target/Target.h"

#include <array>
#include <span>

namespace fusec::cost {

constexpr size_t kLevels = 4; // of memory, in the order of Target::memory

/// Plain counts of one kernel launch. "Vector" = one instruction for all lanes of a unit.
struct Counts {
  double vectorOps = 0; // arithmetic of one unit; an expensive function counts as its instructions
  double vectorLoads = 0; // contiguous or broadcast loads and stores of one unit
  /// CPU: vector operations that could issue while a core waits for the previous step's result, or for memory that
  /// another part reads.
  double stalls = 0;
  double stagedLoads = 0; // CPU: loads and stores of one unit that stage operands before arithmetic
  double gathers = 0;     // lane accesses of one unit by gathers and scatters
  double fills = 0;       // GPU: times that a block waits for a tile which its threads copy
  double reads = 0;       // GPU: of device memory, by one thread in turn
  double readBytes = 0;   // compulsory bytes from device memory: every element once
  double writtenBytes = 0;  // compulsory bytes to device memory
  double constantBytes = 0; // the part of readBytes that no other kernel has written
  double stagedBytes = 0;   // CPU: the part of readBytes that only staging copies read
  /// Bytes that each level serves and takes in the whole launch.
  std::array<double, kLevels> levelBytes{};
  double barriers = 0; // block barriers in one block
  double blocks = 1;   // grid size
  double longestBlock =
      1; // its instructions beside those of an average one, which the others count
  double unitsPerBlock = 1;
  double registersPerThread = 0; // GPU: registers of 32 bits; 0: few
  double sharedBytesPerBlock = 0;
  double launches = 1;
  double rowsAtOnce = 1; // CPU: address streams of the innermost loop
  bool waits = false; // the phase's blocks wait for counters in place of a barrier in front of it
  double rounds = 1;  // how often the phase runs, with a device-wide barrier between two runs
};

/// Counts of parts that have blocks of their own in one grid. Instructions and barriers are the average over all
/// blocks; registers, shared memory and units are those of the part that needs most; `rowsAtOnce` is the average over
/// loads.
Counts sideBySide(std::span<const Counts> parts);

/// Sets the stalls of `whole`, the counts of all `parts` together, on a CPU: its cores run one part's blocks after the
/// other's, so that one part's waits for memory do not overlap with another's arithmetic.
void takeTurns(Counts &whole, std::span<const Counts> parts, const Target &target);

/// Gives every phase of one kernel the registers and the shared memory of the phase that needs most: the occupancy of a
/// kernel is that of its worst phase.
void applyWorstOccupancy(std::span<Counts> phases);

/// The fraction of `bytes` that still hits in a cache when they are read again in the same order: 1 if all of them fit,
/// falling to 0 at twice the capacity, since LRU evicts each byte just before its reuse.
double cacheShare(double bytes, double capacityBytes);

/// If the phase is repeated, the fraction of its reads that each memory level serves: the smallest level that fits the
/// whole working set serves all of them. Constants count as part of the working set.
std::array<double, kLevels> rereadShares(const Counts &counts, const Target &target);

/// Seconds of one launch by a roofline model: launch cost + the maximum of instruction time and of each level's
/// bandwidth time, + block barriers. Instruction time is that of a core with all its resident blocks; with too few
/// units to hide latency, it issues slower. Fewer blocks than cores reach a part of the bandwidth. On a CPU, the result
/// is the minimum of running on all cores and of running on the calling thread alone.
///
/// Arithmetic and memory overlap, except for operands that a CPU's core stages first: its out-of-order window is too
/// short for that. On a GPU a block waits for each tile that it copies and for its threads' reads, as many of them at a
/// time as are on their way at once, which only other blocks of its core hide; and a wave of blocks takes no less than
/// one wait.
///
/// Compulsory bytes come from the smallest level that fits all of them, since the kernel before has just written them.
/// Constants of more than a sixteenth of the last cache come from memory: a network has too many such kernels for the
/// cache to keep them all. On a CPU one address stream reaches less of the memory bandwidth than several, each of which
/// has its own prefetcher.
///
/// The quick model `delta` counts compulsory bytes and instructions only: no staging, latency, barriers or other bytes.
double latency(const Counts &counts, const Target &target);
/// Seconds of a kernel of several phases, after `applyWorstOccupancy`. Between two phases it counts a device-wide
/// barrier or another launch, whichever is cheaper (`joinsPhases`), or counters if the phase behind waits for them. A
/// phase that runs again does not load its constants from memory again.
double latency(std::span<const Counts> phases, const Target &target);
/// True if counters between two phases cost less than a device-wide barrier. Each block signals one at its end, and
/// each block of the phase behind waits at its start; the blocks of one core do so one after the other.
bool countersPay(const Counts &before, const Counts &after, const Target &target);
/// The blocks of this kernel that the whole device holds at once.
int64_t residentBlocks(const Counts &counts, const Target &target);
/// The number of waves: grid size / resident blocks, rounded up.
double waves(const Counts &counts, int64_t resident);
/// Seconds that counters save over device-wide barriers in a kernel whose phases take so many waves each. At least 0.
double savedByCounters(std::span<const double> waves, const Target &target);
/// Seconds that a kernel saves by becoming a phase of another kernel. At least 0.
double savedByPhase(const Target &target);
/// True if a device-wide barrier inside a kernel costs less than a launch.
bool joinsPhases(const Target &target);
/// Seconds of one launch by the quick model (see `latency`).
double delta(const Counts &counts, const Target &target);

} // namespace fusec::cost

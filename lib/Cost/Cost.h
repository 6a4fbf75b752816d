#pragma once
#include "Target/Target.h"

#include <array>
#include <span>

namespace fusec::cost {

constexpr size_t kLevels = 4; // of memory, in the order of Target::memory

/// Plain counts of one kernel launch. "Vector" = one instruction for all lanes of a unit.
struct Counts {
  double vectorOps = 0;   // arithmetic, expensive functions counted by their length; of one unit
  double vectorLoads = 0; // contiguous or broadcast loads and stores, of one unit
  double stalls =
      0; // CPU: places for arithmetic that stay empty: a step waits for the last, a part for memory
  double stagedLoads = 0;   // CPU: of one unit, what copies operands before arithmetic begins
  double gathers = 0;       // lane accesses of loads and stores without a pattern, of one unit
  double readBytes = 0;     // of device memory, compulsory: every element once
  double writtenBytes = 0;  // the same
  double constantBytes = 0; // of readBytes: what no other kernel has written
  double stagedBytes = 0;   // CPU: of readBytes, what only those copies read; hides behind them
  std::array<double, kLevels>
      levelBytes{};    // of the whole launch: what each level hands out and takes
  double barriers = 0; // block barriers in one block
  double blocks = 1;   // grid size
  double unitsPerBlock = 1;
  double registersPerThread = 0; // GPU, of 32 bits; 0: few
  double sharedBytesPerBlock = 0;
  double launches = 1;
  double rowsAtOnce = 1; // CPU: runs of addresses that the innermost loop goes along side by side
  bool waits = false;    // a phase whose blocks wait for counters, with no barrier in front of it
  double rounds = 1;     // of a phase: how often it runs, a device-wide barrier between any two
};

/// Of parts with blocks of their own in one grid: a block does what the average block does, and needs on chip what the
/// neediest one does; rows at once are those of the average load.
Counts sideBySide(std::span<const Counts> parts);

/// Of such parts on a CPU, whose cores work off one part's blocks behind the other's: what waits for memory in one part
/// does not overlap with another's arithmetic. Sets the stalls of `whole`, which is what all parts count.
void takeTurns(Counts &whole, std::span<const Counts> parts, const Target &target);

/// Of phases of one kernel: each holds the registers and the shared memory that the neediest one does.
void shareKernel(std::span<Counts> phases);

/// Part of `bytes` that a cache still holds when they are asked for again: all that fits, and of twice as much nothing,
/// since each byte drives out the one that is needed next.
double heldShare(double bytes, double capacityBytes);

/// Part of what a phase reads that each level of memory serves when the phase runs again, constants among it: the
/// smallest that holds all of it.
std::array<double, kLevels> servedAgain(const Counts &counts, const Target &target);

/// Seconds of one launch: launch cost + the slowest of instructions, where a core works on all blocks that it holds at
/// once, and of each level's bytes (roofline; fewer blocks than cores draw on a part of it), + barriers. Units too few
/// to hide their latency issue slower. On a CPU the calling thread does it alone where handing it out does not pay.
///
/// Arithmetic and memory overlap but for operands that a CPU's core copies closer first: it does not look so far ahead.
///
/// Compulsory bytes come from the smallest level that holds all of them: the kernel before has just written them. Those
/// of constants beyond a sixteenth of the last cache come from memory: a network has more of such kernels than the
/// cache has room for. A CPU's core that goes along one row asks memory for less than one that goes along several, each
/// of which is fetched ahead of its own.
///
/// The quick fidelity `delta` knows compulsory bytes and instructions: no staging, latencies, barriers, other bytes.
double latency(const Counts &counts, const Target &target);
/// The same of a kernel of several phases: one after the other, with a device-wide barrier between them or, where that
/// is dearer, another launch (`joinsPhases` says which); or with counters, where a phase waits for them. A
/// phase that runs again finds its constants where the last cache has held them. `shareKernel` comes first.
double latency(std::span<const Counts> phases, const Target &target);
/// True where counters between two phases cost less than a device-wide barrier. Each block that has ended raises one,
/// and each that begins waits; a core's blocks do so one after the other.
bool countersPay(const Counts &before, const Counts &after, const Target &target);
/// Blocks that the device holds at once (residentBlocks), as many on each of its cores.
int64_t places(const Counts &counts, const Target &target);
/// Blocks that one place works off, one after the other.
double turns(const Counts &counts, int64_t places);
/// What counters save in a kernel of several phases where barriers would stand, all of them together; `turns` of each
/// phase. At least 0.
double savedByCounters(std::span<const double> turns, const Target &target);
/// What a phase saves beside the kernel that it would be alone.
double savedByPhase(const Target &target);
/// True where a device-wide barrier inside a kernel costs less than a launch.
bool joinsPhases(const Target &target);
double delta(const Counts &counts, const Target &target);

} // namespace fusec::cost

#pragma once
#include "Target/Target.h"

#include <span>

namespace fusec::cost {

/// Plain counts of one kernel launch. "Vector" = one instruction for all lanes of a unit.
struct Counts {
  double vectorOps = 0;    // arithmetic, expensive functions counted by their length
  double vectorLoads = 0;  // contiguous or broadcast loads and stores
  double gathers = 0;      // lane accesses of loads and stores without a pattern
  double readBytes = 0;    // of device memory, compulsory: every element once
  double writtenBytes = 0; // the same
  double innerBytes = 0;   // bytes asked of the first cache level or shared memory
  double barriers = 0;     // block barriers in one block
  double blocks = 1;       // grid size
  double unitsPerBlock = 1;
  double launches = 1;
};

/// Seconds of one launch: launch cost + waves of blocks, each bounded by the slowest of issue, inner memory and
/// global bandwidth (roofline; fewer blocks than cores draw on a part of it), + barriers. Units too few to hide their
/// latency issue slower. The quick fidelity `delta` leaves waves, latency hiding and barriers out.
double latency(const Counts &counts, const Target &target);
/// The same of a kernel of several phases: one after the other, with a device-wide barrier between them or, where that
/// is dearer, another launch (`joinsPhases` says which).
double latency(std::span<const Counts> phases, const Target &target);
/// True where a device-wide barrier inside a kernel costs less than a launch.
bool joinsPhases(const Target &target);
double delta(const Counts &counts, const Target &target);

} // namespace fusec::cost

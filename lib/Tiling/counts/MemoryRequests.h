#pragma once
#include "Target/Target.h"
#include "Tiling/counts/SectorCounter.h"

namespace fusec {

/// What the instructions of one launch ask of memory, at the symbols' opt values. CompulsoryTraffic.h has what cannot
/// be avoided.
struct MemoryRequests {
  double readBytes = 0,
         writtenBytes = 0; // of device memory, summed over threads (CPU: elements of vectors)
  double readSectors = 0,
         writtenSectors = 0; // of 32 bytes: different ones of a unit's lanes; CPU: none
  double sharedBytes = 0;    // of a block's own memory, read and written
  bool fromData = false;     // data decides which sectors are touched, or whether at all
};

/// Counts over the loop tree, from the access maps and from where operands and edges live; nothing is lowered for it.
/// Where an address or a predicate comes from data, its
/// sectors are those of any data, and the access is taken to happen: all else is what a launch does, but for topk.
MemoryRequests movedBytes(const Schedule &schedule, const ExprProgram &pattern,
                          const Target &target, tiling::Effort effort);
/// Of a schedule of these very equations; `facts`: theirs.
MemoryRequests movedBytesOf(const Schedule &schedule, const ExprProgram &equations,
                            const std::vector<tiling::EquationFacts> &facts, const Target &target,
                            tiling::Effort effort);

} // namespace fusec

#pragma once
#include "Target/Target.h"
#include "Tiling/counts/SectorCounter.h"

namespace fusec {

/// What the instructions of one launch ask of memory, at the symbols' opt values. CompulsoryTraffic.h has what cannot
/// be avoided.
struct MemoryRequests {
  /// Bytes of device memory, summed over threads (CPU: over elements of vectors).
  double readBytes = 0, writtenBytes = 0;
  /// Distinct 32-byte sectors per warp access, summed over all accesses; CPU: none.
  double readSectors = 0, writtenSectors = 0;
  double sharedBytes = 0; // read from and written to a block's own memory
  bool fromData = false;  // data decides which sectors are touched, or whether at all
};

/// Counts over the loop tree, from the access maps and from where operands and edges live; nothing is lowered for it.
/// If an address or a predicate depends on data, the sectors are those of random data, and the access is taken to
/// happen. All other counts are exact, except for topk.
MemoryRequests movedBytes(const tiling::BoundSchedule &bound, const Target &target,
                          tiling::Effort effort);

} // namespace fusec

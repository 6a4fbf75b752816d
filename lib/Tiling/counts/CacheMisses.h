#pragma once
#include "Target/Target.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Bytes of one launch that a level of a CPU's memory does not hold when they are asked for, and that come from the one
/// behind it. None where it holds what a core touches: the steps around have left it there (cost::cacheShare).
struct MissedBytes {
  double all = 0;
  /// Bytes of tensors that products read faster than they come, whoever touches them.
  double awaited = 0;
};
/// For each level but the last one, which holds everything.
std::vector<MissedBytes> missedBytes(const BoundSchedule &bound, const OnChipStorage &storage,
                                     const Target &target, double blocks);

/// What is read of those arguments other than constants that nothing but copies into shared memory (a CPU core's own
/// buffers) reads. `traffic`: of the same equations.
double stagedBytes(const BoundSchedule &bound, const Traffic &traffic);

} // namespace fusec::tiling

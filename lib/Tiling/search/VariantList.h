#pragma once
#include "Tiling/search/BestSchedules.h"
#include "Tiling/search/SizeChoice.h"

namespace fusec::tiling {

/// What the leaves and tests of a SizeTree stand for.
struct SizeLeaves {
  const ExprProgram &pattern;
  const std::vector<DimExpr> &features;
  /// The schedules that leaves name, each the last of its variants.
  const std::vector<std::vector<ScheduleVariant>> &found;
  size_t far; // of these, the one for sizes beyond what a leaf's can take
};

/// A tree's leaves as a list of guarded schedules, the first of which that holds is taken.
std::vector<ScheduleVariant> variantsOf(const SizeTree &tree, const SizeLeaves &leaves);

} // namespace fusec::tiling

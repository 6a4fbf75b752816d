#pragma once

#include "Cost/Cost.h"
#include "Tiling/counts/LaneAccess.h"

namespace fusec::tiling {

/// A statement, the loops around it, and how often each unit does it.
struct CountedLeaf {
  const TreeNode &leaf;
  const TripLoops &loops;
  double times;
};

/// Adds what a statement of topk costs; `vectorLanes` as Target has it.
void addTopKWork(const BoundSchedule &bound, const CountedLeaf &statement, bool vectorLanes,
                 cost::Counts &counts);

} // namespace fusec::tiling

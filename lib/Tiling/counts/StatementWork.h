#pragma once
// The work of statements that are no plain equation's.
#include "Cost/Cost.h"
#include "Tiling/counts/LaneAccess.h"

namespace fusec::tiling {

/// A statement, the loops around it, and how often each unit does it.
struct CountedLeaf {
  const LeafNode &leaf;
  const Loops &loops;
  double times;
};

/// Adds the work of one leaf of a cascade other than its Compute and Store. A merge (Combine) exchanges all states and
/// corrects both sides, each time that the number of partners halves.
void addCascadeWork(const BoundSchedule &bound, const CountedLeaf &statement, cost::Counts &counts);

/// Adds what a statement of topk costs; `vectorLanes` as Target has it.
void addTopKWork(const BoundSchedule &bound, const CountedLeaf &statement, bool vectorLanes,
                 cost::Counts &counts);

} // namespace fusec::tiling

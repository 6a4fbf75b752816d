#pragma once
#include "Cost/Cost.h"
#include "Expr/Expr.h"
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// Adds the work of one leaf of a cascade other than its Compute and Store, done so many times by threads of so many
/// lanes. A merge (Combine) exchanges all states and corrects both sides, each time that the number of partners halves.
void addCascadeWork(const Equation &cascade, const TreeNode &leaf, double times, int lanes,
                    cost::Counts &counts);

} // namespace fusec::tiling

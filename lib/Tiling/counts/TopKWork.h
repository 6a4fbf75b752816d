#pragma once

#include "Cost/Cost.h"
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// Adds what a statement of topk costs that is done `times` times by each unit; `loops` are those around it.
void addTopKWork(const Schedule &schedule, const ExprProgram &pattern, const TreeNode &leaf,
                 const std::vector<const TreeNode *> &loops, double times, bool cpu,
                 cost::Counts &counts);

} // namespace fusec::tiling

#pragma once
#include "Tiling/schedule/EquationFacts.h"
#include "Tiling/schedule/Schedule.h"

#include <map>

namespace fusec::tiling {

/// The number of block barriers in `nodes`, one phase of a GPU's kernel or a part of a pack, summed over the iterations
/// of their loops. A barrier is needed where a thread reads what another one has written, or writes what others still
/// read; it is found in the loop tree by the rules that insertSyncs (Gir/Passes.h) follows in the code. Barriers inside
/// topk's own statements are not counted here. `facts`: of the pattern's equations. `trips`: of the loops.
double blockBarriers(const Schedule &schedule, const std::vector<TreeNode> &nodes,
                     const ExprProgram &pattern, const std::vector<EquationFacts> &facts,
                     const std::map<const TreeNode *, double> &trips);

} // namespace fusec::tiling

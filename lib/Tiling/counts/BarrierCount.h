#pragma once
#include "Tiling/schedule/EquationFacts.h"
#include "Tiling/schedule/Schedule.h"

#include <map>

namespace fusec::tiling {

/// Barriers of a block that `nodes`, one phase of a GPU's kernel or a part of a pack, take, summed over the iterations
/// of their loops: where a thread reads what another one has written, or writes what others still read. Found in the
/// loop tree by the rules that insertSyncs (Gir/Passes.h) follows in the code; what topk's statements need is theirs to
/// say. `facts`: of the pattern's equations. `trips`: of the loops.
double blockBarriers(const Schedule &schedule, const std::vector<TreeNode> &nodes,
                     const ExprProgram &pattern, const std::vector<EquationFacts> &facts,
                     const std::map<const TreeNode *, double> &trips);

} // namespace fusec::tiling

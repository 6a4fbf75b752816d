#pragma once
#include "Tiling/schedule/BoundSchedule.h"

#include <map>

namespace fusec::tiling {

/// The number of block barriers in `nodes`, one phase of a GPU's kernel or a part of a pack, summed over the iterations
/// of their loops. A barrier is needed where a thread reads what another one has written, or writes what others still
/// read; it is found in the loop tree by the rules that insertSyncs (Gir/Passes.h) follows in the code. Barriers inside
/// topk's own statements are not counted here.
double blockBarriers(const BoundSchedule &bound, std::span<const TreeNode> nodes);

} // namespace fusec::tiling

#include "Tiling/search/ChooseSignals.h"

#include "Tiling/schedule/PhaseSignals.h"

namespace fusec::tiling {

void chooseSignals(Schedule &schedule, const ExprProgram &pattern,
                   std::vector<cost::Counts> &phases, const Target &target) {
  const std::vector<TreeNode> barriers = schedule.tree;
  const double before = cost::latency(phases, target);
  size_t phase = 0;
  bool any = false;
  for (TreeNode &node : schedule.tree) {
    if (!node.isBorder())
      continue;
    ++phase;
    if (!cost::countersPay(phases[phase - 1], phases[phase], target))
      continue;
    node.leaf = LeafKind::Counters;
    phases[phase].waits = any = true;
  }
  if (any && cost::latency(phases, target) < before &&
      phaseSignals(schedule, pattern).problems.empty())
    return;
  schedule.tree = barriers;
  for (cost::Counts &counts : phases)
    counts.waits = false;
}

} // namespace fusec::tiling

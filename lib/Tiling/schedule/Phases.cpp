#include "Tiling/schedule/Phases.h"

#include "Expr/PatternPart.h"

#include <algorithm>
#include <functional>

namespace fusec::tiling {

void shiftEquations(Schedule &schedule, int offset) {
  for (ScheduleAxis &axis : schedule.axes)
    for (AxisUse &use : axis.uses)
      for (int &e : use.equations)
        e += offset;
  for (Operand &operand : schedule.operands)
    operand.equation += offset;
  for (ReusedRead &kept : schedule.kept) {
    kept.read.equation += offset;
    if (kept.from)
      kept.from->equation += offset;
  }
  std::function<void(std::vector<TreeNode> &)> shift = [&](std::vector<TreeNode> &nodes) {
    for (TreeNode &node : nodes) {
      if (node.isLoop)
        shift(node.children);
      else if (node.leaf != LeafKind::Stage && !node.isBorder())
        node.target += offset;
    }
  };
  shift(schedule.tree);
}

/// The first equation that a phase's statements are about; those of one phase have neighbouring numbers.
static int firstEquation(const Schedule &schedule, std::span<const TreeNode> nodes) {
  int first = INT32_MAX;
  for (const TreeNode &node : nodes) {
    if (node.isLoop)
      first = std::min(first, firstEquation(schedule, node.children));
    else
      first = std::min(first, node.leaf == LeafKind::Stage ? schedule.operands[node.target].equation
                                                           : node.target);
  }
  return first;
}

std::vector<int> phaseStarts(const Schedule &schedule) {
  std::vector<int> starts;
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  for (size_t p = 1; p < phases.size(); ++p)
    starts.push_back(firstEquation(schedule, phases[p]));
  return starts;
}

std::vector<PhasePart> partsOf(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule();
  const ExprProgram &pattern = bound.program();
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  if (phases.size() == 1)
    return {{pattern, schedule}};
  std::vector<int> bounds = phaseStarts(schedule);
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(static_cast<int>(pattern.items.size()));
  std::vector<PhasePart> parts;
  for (size_t p = 0; p < phases.size(); ++p) {
    PhasePart part{partOfPattern(pattern, bounds[p], bounds[p + 1]), schedule};
    part.schedule.tree.assign(phases[p].begin(), phases[p].end());
    shiftEquations(part.schedule, -bounds[p]);
    std::erase_if(part.schedule.edges, [&](const EdgeLevel &edge) { // of the other phases
      return part.pattern.tensors[edge.tensor].kind != TensorKind::Temp;
    });
    const auto equations = static_cast<int>(part.pattern.items.size());
    std::erase_if(part.schedule.kept, [&](const ReusedRead &kept) {
      return kept.read.equation < 0 || kept.read.equation >= equations;
    });
    parts.push_back(std::move(part));
  }
  return parts;
}

} // namespace fusec::tiling

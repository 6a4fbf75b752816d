#include "Tiling/schedule/Phases.h"

#include "Expr/PatternPart.h"

#include <algorithm>

namespace fusec::tiling {

void renumberEquations(Schedule &schedule, const std::function<int(int)> &number) {
  for (ScheduleAxis &axis : schedule.axes)
    for (AxisUse &use : axis.uses)
      for (int &e : use.equations)
        e = number(e);
  for (Operand &operand : schedule.operands)
    operand.equation = number(operand.equation);
  for (ReusedRead &kept : schedule.kept) {
    kept.read.equation = number(kept.read.equation);
    if (kept.from)
      kept.from->equation = number(kept.from->equation);
  }
  std::function<void(std::span<TreeNode>)> visit = [&](std::span<TreeNode> nodes) {
    for (TreeNode &node : nodes) {
      if (LeafNode *leaf = node.leaf(); leaf && leaf->equation >= 0)
        leaf->equation = number(leaf->equation);
      visit(node.children());
    }
  };
  visit(schedule.tree);
}

std::vector<int> phaseStarts(const Schedule &schedule) {
  std::vector<int> starts;
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  for (size_t p = 1; p < phases.size(); ++p) {
    // The statements of one phase are about equations of neighbouring numbers; Carry alone is about none.
    const std::set<int> inside = equationsIn(phases[p], schedule);
    starts.push_back(inside.empty() ? 0 : *inside.begin());
  }
  return starts;
}

std::vector<PhaseSchedule> schedulesOfPhases(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule;
  const ExprProgram &pattern = bound.program.expr;
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  if (phases.size() == 1)
    return {{pattern, schedule}};
  std::vector<int> bounds = phaseStarts(schedule);
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(static_cast<int>(pattern.items.size()));
  std::vector<PhaseSchedule> parts;
  for (size_t p = 0; p < phases.size(); ++p) {
    PhaseSchedule part{partOfPattern(pattern, bounds[p], bounds[p + 1]), schedule};
    part.schedule.tree.assign(phases[p].begin(), phases[p].end());
    renumberEquations(part.schedule, [&](int equation) { return equation - bounds[p]; });
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

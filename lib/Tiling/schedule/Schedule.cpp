#include "Tiling/schedule/Schedule.h"

#include <algorithm>
#include <set>

namespace fusec {

bool isPack(std::span<const TreeNode> nodes) {
  return nodes.size() > 1 && std::ranges::all_of(nodes, [](const TreeNode &node) {
           return node.loop(LoopKind::Block) != nullptr;
         });
}

std::vector<std::span<const TreeNode>> sideBySide(std::span<const TreeNode> phase) {
  if (!isPack(phase))
    return {phase};
  std::vector<std::span<const TreeNode>> parts;
  for (size_t part = 0; part < phase.size(); ++part)
    parts.push_back(phase.subspan(part, 1));
  return parts;
}

const LoopNode *onlyBlockLoop(std::span<const TreeNode> nodes) {
  return nodes.size() == 1 ? nodes[0].loop(LoopKind::Block) : nullptr;
}

const AxisUse *ScheduleAxis::in(int equation) const {
  for (const AxisUse &use : uses)
    if (std::ranges::find(use.equations, equation) != use.equations.end())
      return &use;
  return nullptr;
}

std::vector<std::span<const TreeNode>> phasesOf(const std::vector<TreeNode> &tree) {
  std::vector<std::span<const TreeNode>> list;
  auto begin = tree.begin();
  for (auto it = tree.begin(); it != tree.end(); ++it)
    if (it->isBorder()) {
      list.emplace_back(begin, it);
      begin = it + 1;
    }
  list.emplace_back(begin, tree.end());
  return list;
}

std::vector<const Equation *> scheduledEquations(const ExprProgram &pattern) {
  std::vector<const Equation *> out;
  if (const Equation *scan = scanOf(pattern)) {
    for (const Equation &e : scan->scanBody)
      out.push_back(&e);
    return out;
  }
  for (const Item &item : pattern.items)
    out.push_back(&std::get<Equation>(item.value));
  return out;
}

const Equation *scanOf(const ExprProgram &pattern) {
  if (pattern.items.size() != 1)
    return nullptr;
  const auto *equation = std::get_if<Equation>(&pattern.items[0].value);
  return equation && equation->kind == EquationKind::Scan ? equation : nullptr;
}

namespace tiling {

const LoopNode *gridScanOf(std::span<const TreeNode> phase) {
  const LoopNode *loop = phase.size() == 1 ? phase[0].loop() : nullptr;
  const bool spread = loop && loop->axis == kStepAxis &&
                      std::ranges::any_of(loop->children, [](const TreeNode &node) {
                        return node.isBorder() || node.loop(LoopKind::Block);
                      });
  return spread ? loop : nullptr;
}

bool hasGridScan(const Schedule &schedule) {
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  return std::ranges::any_of(
      phases, [](std::span<const TreeNode> phase) { return gridScanOf(phase) != nullptr; });
}

bool isPreviousState(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.carries, t, &ScanCarry::previous) != scan.carries.end();
}

bool isNextState(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.carries, t, &ScanCarry::next) != scan.carries.end();
}

bool isStacked(const Equation &scan, TensorId t) {
  return std::ranges::find(scan.scanOutputs, t, &ScanOutput::perStep) != scan.scanOutputs.end();
}

std::vector<std::pair<TensorId, TensorId>> carriedStates(const Equation &scan, int when) {
  std::vector<std::pair<TensorId, TensorId>> copies;
  for (const ScanCarry &c : scan.carries) {
    const TensorId from = when == 0 ? c.init : when == 1 ? c.next : c.previous;
    const TensorId to = when == 2 ? c.final : c.previous;
    if (to >= 0 && from != to)
      copies.emplace_back(from, to);
  }
  return copies;
}

MemLevel levelOf(const Schedule &schedule, TensorId tensor) {
  for (const EdgeLevel &edge : schedule.edges)
    if (edge.tensor == tensor)
      return edge.level;
  return MemLevel::Global;
}

void setLevel(Schedule &schedule, TensorId tensor, MemLevel level) {
  std::erase_if(schedule.edges, [&](const EdgeLevel &edge) { return edge.tensor == tensor; });
  if (level != MemLevel::Global)
    schedule.edges.push_back({tensor, level});
}

std::vector<TensorId> valuesInside(const ExprProgram &pattern) {
  std::set<TensorId> made;
  for (const Equation *e : scheduledEquations(pattern))
    made.insert(e->outputs.begin(), e->outputs.end());
  if (const Equation *scan = scanOf(pattern))
    for (const ScanCarry &carry : scan->carries)
      made.insert(carry.previous);
  std::vector<TensorId> inside;
  for (TensorId t : made)
    if (pattern.tensors[t].kind == TensorKind::Temp)
      inside.push_back(t);
  return inside;
}

AxisId axisOf(const Schedule &schedule, int equation, int position) {
  for (size_t a = 0; a < schedule.axes.size(); ++a)
    if (const AxisUse *use = schedule.axes[a].in(equation);
        use && std::ranges::count(use->positions, position) != 0)
      return AxisId(a);
  return {};
}

} // namespace tiling
} // namespace fusec

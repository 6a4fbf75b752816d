#include "Tiling/schedule/GridScan.h"

#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/Schedule.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

const TreeNode *gridScanOf(std::span<const TreeNode> phase) {
  if (phase.size() != 1 || !phase[0].isLoop || phase[0].axis != kStepAxis)
    return nullptr;
  const std::vector<TreeNode> &inside = phase[0].children;
  const bool spread = std::any_of(inside.begin(), inside.end(), [](const TreeNode &node) {
    return node.isBorder() || (node.isLoop && node.loop == LoopKind::Block);
  });
  return spread ? &phase[0] : nullptr;
}

bool hasGridScan(const Schedule &schedule) {
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  return std::any_of(phases.begin(), phases.end(),
                     [](std::span<const TreeNode> phase) { return gridScanOf(phase) != nullptr; });
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

bool outlivesStep(const Equation &scan, TensorId t, bool inGridScan) {
  return isStacked(scan, t) || (inGridScan && isNextState(scan, t));
}

namespace {

/// The dimensions that a map reads by its axes longer than 1, in their order: at its own point, whatever the indices of
/// the others. None where an axis has no such dimension.
std::vector<int> ownDims(const ExprProgram &pattern, const Equation &map, NodeId read) {
  const Scalar &node = map.body[read];
  const Shape &shape = pattern.tensors[node.index].shape;
  const std::vector<NodeId> indices = indexOperands(node);
  std::vector<int> dims;
  for (size_t a = 0; a < map.axes.size(); ++a) {
    if (map.axes[a].extent.isConst(1))
      continue;
    size_t d = 0;
    while (d < shape.size() &&
           (map.body[indices[d]].op != ScalarOp::Axis ||
            map.body[indices[d]].index != static_cast<int>(a) || shape[d] != map.axes[a].extent))
      ++d;
    if (d == shape.size())
      return {};
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

/// True if `dims` are all dimensions longer than 1, in their order.
bool areAll(const std::vector<int> &dims, const Shape &shape) {
  size_t longer = 0;
  for (const DimExpr &extent : shape)
    longer += !extent.isConst(1);
  return dims.size() == longer && std::is_sorted(dims.begin(), dims.end());
}

} // namespace

StepParts partsOfStep(const ExprProgram &pattern, bool withSums) {
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  StepParts step;
  step.phases.assign(equations.size(), 0);
  step.points.resize(equations.size());
  std::map<TensorId, size_t> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    step.parts.push_back(static_cast<int>(e));
    std::map<size_t, std::vector<int>> own; // makers, and the dimensions read by the own axes
    for (NodeId read : readsOf(*equations[e])) {
      const TensorId t = equations[e]->body[read].index;
      auto found = makers.find(t);
      if (found == makers.end())
        continue;
      const size_t maker = found->second;
      std::vector<int> dims;
      if (equations[e]->kind == EquationKind::Map)
        dims = ownDims(pattern, *equations[e], read);
      bool isOwn = false;
      if (equations[maker]->kind == EquationKind::Map)
        isOwn = !dims.empty() && areAll(dims, pattern.tensors[t].shape);
      else if (withSums && equations[maker]->kind == EquationKind::Reduction)
        isOwn = !dims.empty() && (step.points[maker].empty() || step.points[maker] == dims) &&
                own.try_emplace(maker, dims).first->second == dims;
      if (isOwn)
        own.try_emplace(maker, dims);
      step.phases[e] = std::max(step.phases[e], step.phases[maker] + (isOwn ? 0 : 1));
    }
    for (auto &[maker, dims] : own) {
      if (step.phases[maker] != step.phases[e])
        continue;
      const int from = step.parts[e], to = step.parts[maker];
      std::replace(step.parts.begin(), step.parts.end(), std::max(from, to), std::min(from, to));
      if (equations[maker]->kind == EquationKind::Reduction)
        step.points[maker] = std::move(dims);
    }
    for (TensorId t : equations[e]->outputs)
      makers[t] = e;
  }
  return step;
}

} // namespace fusec::tiling

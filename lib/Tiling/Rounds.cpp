#include "Tiling/Rounds.h"

#include "Tiling/Access.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

const TreeNode *roundsOf(std::span<const TreeNode> phase) {
  if (phase.size() != 1 || !phase[0].isLoop || phase[0].axis != kStepAxis)
    return nullptr;
  const std::vector<TreeNode> &inside = phase[0].children;
  const bool spread = std::any_of(inside.begin(), inside.end(), [](const TreeNode &node) {
    return node.isBarrier() || (node.isLoop && node.loop == LoopKind::Block);
  });
  return spread ? &phase[0] : nullptr;
}

bool hasRounds(const Schedule &schedule) {
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  return std::any_of(phases.begin(), phases.end(),
                     [](std::span<const TreeNode> phase) { return roundsOf(phase) != nullptr; });
}

bool readsOwnElement(const ExprProgram &pattern, const Equation &reader, NodeId read) {
  if (reader.kind != EquationKind::Map)
    return false;
  const Scalar &node = reader.body[read];
  const Shape &shape = pattern.tensors[node.index].shape;
  const std::vector<NodeId> indices = indexOperands(node);
  size_t axis = 0;
  auto skipUnits = [&] {
    while (axis < reader.axes.size() && reader.axes[axis].extent.isConst(1))
      ++axis;
  };
  skipUnits();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].isConst(1))
      continue;
    const Scalar &index = reader.body[indices[d]];
    if (axis == reader.axes.size() || index.op != ScalarOp::Axis ||
        index.index != static_cast<int>(axis) || reader.axes[axis].extent != shape[d])
      return false;
    ++axis;
    skipUnits();
  }
  return axis == reader.axes.size();
}

std::vector<int> phasesOfStep(const ExprProgram &pattern) {
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  std::vector<int> phases(equations.size(), 0);
  std::map<TensorId, size_t> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    for (NodeId read : readsOf(*equations[e])) {
      auto maker = makers.find(equations[e]->body[read].index);
      if (maker == makers.end())
        continue;
      const bool own = equations[maker->second]->kind == EquationKind::Map &&
                       readsOwnElement(pattern, *equations[e], read);
      phases[e] = std::max(phases[e], phases[maker->second] + (own ? 0 : 1));
    }
    for (TensorId t : equations[e]->outputs)
      makers[t] = e;
  }
  return phases;
}

std::vector<double> placesOf(const Schedule &schedule, const ExprProgram &pattern, TensorId t,
                             const std::vector<int64_t> &symbols) {
  const Equation *scan = scanOf(pattern);
  auto valueOf = [&](const DimExpr &e) { return double(e.evaluate(symbols).value_or(1)); };
  std::vector<double> places;
  for (size_t o = 0; scan && o < scan->scanOutputs.size(); ++o)
    if (const ScanOutput &output = scan->scanOutputs[o]; output.perStep == t)
      places.push_back(output.first < 0 ? 1
                                        : valueOf(pattern.tensors[output.stacked].shape[0]) /
                                              std::max(1.0, valueOf(scan->steps)));
  const bool carried = scan && hasRounds(schedule) &&
                       std::any_of(scan->carries.begin(), scan->carries.end(),
                                   [&](const ScanCarry &carry) { return carry.next == t; });
  if (carried || places.empty())
    places.push_back(1);
  return places;
}

namespace {

void noteEquations(std::span<const TreeNode> nodes, const Schedule &schedule, std::set<int> &into) {
  for (const TreeNode &node : nodes) {
    if (node.isLoop)
      noteEquations(node.children, schedule, into);
    else
      into.insert(node.leaf == LeafKind::Stage ? schedule.operands[node.target].equation
                                               : node.target);
  }
}

} // namespace

std::vector<RoundPart> partsOfRound(const Schedule &schedule, const ExprProgram &pattern) {
  std::vector<RoundPart> parts;
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree)) {
    const TreeNode *loop = roundsOf(phase);
    if (!loop)
      continue;
    for (std::span<const TreeNode> nodes : phasesOf(loop->children)) {
      std::set<int> inside;
      noteEquations(nodes, schedule, inside);
      RoundPart part{{}, pattern, schedule};
      part.schedule.tree.assign(nodes.begin(), nodes.end());
      part.program.items.clear();
      std::set<TensorId> made, read, leaves;
      for (size_t e = 0; e < equations.size(); ++e) {
        const bool own = inside.count(static_cast<int>(e)) != 0;
        part.own.push_back(own);
        part.program.items.push_back({*equations[e]});
        if (own)
          made.insert(equations[e]->outputs.begin(), equations[e]->outputs.end());
        for (NodeId id : readsOf(*equations[e]))
          (own ? read : leaves).insert(equations[e]->body[id].index);
      }
      const Equation &scan = *scanOf(pattern);
      for (const ScanCarry &carry : scan.carries)
        leaves.insert(carry.next);
      for (const ScanOutput &output : scan.scanOutputs)
        leaves.insert(output.perStep);
      for (size_t t = 0; t < part.program.tensors.size(); ++t) {
        Tensor &tensor = part.program.tensors[t];
        const auto id = static_cast<TensorId>(t);
        if (made.count(id) != 0)
          tensor.kind = leaves.count(id) != 0 ? TensorKind::Output : TensorKind::Temp;
        else if (tensor.kind != TensorKind::Constant || read.count(id) == 0)
          tensor.kind = TensorKind::Input; // another phase's, or nobody's
      }
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

} // namespace fusec::tiling

#include "Tiling/Phases.h"

#include "Tiling/Oracle.h"
#include "Tiling/Pieces.h"
#include "Tiling/Work.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec::tiling {

namespace {

/// Equations get other numbers: `offset` is added.
void shiftEquations(Schedule &schedule, int offset) {
  for (ScheduleAxis &axis : schedule.axes)
    for (AxisUse &use : axis.uses)
      for (int &e : use.equations)
        e += offset;
  for (Operand &operand : schedule.operands)
    operand.equation += offset;
  std::function<void(std::vector<TreeNode> &)> shift = [&](std::vector<TreeNode> &nodes) {
    for (TreeNode &node : nodes) {
      if (node.isLoop)
        shift(node.children);
      else if (node.leaf != LeafKind::Stage)
        node.target += offset;
    }
  };
  shift(schedule.tree);
}

/// The first equation that a phase's statements are about; those of one phase have neighbouring numbers.
int firstEquation(const Schedule &schedule, std::span<const TreeNode> nodes) {
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

} // namespace

ExprProgram phasePattern(const ExprProgram &pattern, int first, int last) {
  ExprProgram part = pattern;
  part.items.assign(pattern.items.begin() + first, pattern.items.begin() + last);
  part.inputs.clear();
  part.outputs.clear();
  std::set<TensorId> made, read, readLater;
  for (size_t i = 0; i < pattern.items.size(); ++i) {
    const Equation &e = std::get<Equation>(pattern.items[i].value);
    const bool inside = static_cast<int>(i) >= first && static_cast<int>(i) < last;
    if (inside)
      made.insert(e.outputs.begin(), e.outputs.end());
    for (NodeId id : readsOf(e))
      (inside ? read : readLater).insert(e.body[id].index);
  }
  for (size_t t = 0; t < part.tensors.size(); ++t) {
    Tensor &tensor = part.tensors[t];
    const auto id = static_cast<TensorId>(t);
    if (made.count(id)) {
      if (tensor.kind == TensorKind::Temp && readLater.count(id))
        tensor.kind = TensorKind::Output;
      if (tensor.kind == TensorKind::Output)
        part.outputs.push_back(id);
    } else if (read.count(id)) {
      if (tensor.kind != TensorKind::Constant)
        tensor.kind = TensorKind::Input;
      part.inputs.push_back(id);
    } else {
      tensor.kind = TensorKind::Input; // of another phase
    }
  }
  return part;
}

Candidates phasedCandidates(const ExprProgram &pattern, const Target &target,
                            const std::vector<int> &phaseStarts, KnownParts *known) {
  struct Best {
    double seconds = 0;
    Schedule schedule;
  };
  for (const Equation *e : scheduledEquations(pattern))
    if (scanOf(pattern) || (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction))
      return {};
  std::map<int, std::vector<Best>> ofUnits; // one a phase
  std::vector<int> bounds = phaseStarts;
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(static_cast<int>(pattern.items.size()));
  for (size_t p = 0; p + 1 < bounds.size(); ++p) {
    const ExprProgram part = phasePattern(pattern, bounds[p], bounds[p + 1]);
    WorkMeter meter(part, target);
    for (Schedule &candidate : plainCandidates(part, target, known)) {
      const double seconds = meter.seconds(candidate);
      std::vector<Best> &phases = ofUnits[candidate.units];
      if (phases.size() == p)
        phases.push_back({seconds, std::move(candidate)});
      else if (phases.size() == p + 1 && seconds < phases[p].seconds)
        phases[p] = {seconds, std::move(candidate)};
    }
  }
  Candidates out;
  for (auto &[units, phases] : ofUnits) {
    if (phases.size() + 1 != bounds.size())
      continue;
    Schedule whole;
    whole.name = "phases";
    whole.units = units;
    whole.lanes = target.lanes;
    for (size_t p = 0; p < phases.size(); ++p) {
      Schedule &part = phases[p].schedule;
      whole.lanes = part.lanes;
      shiftEquations(part, bounds[p]);
      whole.edges.insert(whole.edges.end(), part.edges.begin(), part.edges.end());
      if (p > 0)
        whole.tree.push_back(Builder::leaf(LeafKind::Barrier, -1));
      for (TreeNode &node : appendPiece(whole, std::move(part), "p" + std::to_string(p)))
        whole.tree.push_back(std::move(node));
    }
    out.push_back(std::move(whole));
  }
  return out;
}

std::vector<int> phaseStarts(const Schedule &schedule) {
  std::vector<int> starts;
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  for (size_t p = 1; p < phases.size(); ++p)
    starts.push_back(firstEquation(schedule, phases[p]));
  return starts;
}

std::vector<PhasePart> partsOf(const Schedule &schedule, const ExprProgram &pattern) {
  const std::vector<std::span<const TreeNode>> phases = phasesOf(schedule.tree);
  if (phases.size() == 1)
    return {{pattern, schedule}};
  std::vector<int> bounds = phaseStarts(schedule);
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(static_cast<int>(pattern.items.size()));
  std::vector<PhasePart> parts;
  for (size_t p = 0; p < phases.size(); ++p) {
    PhasePart part{phasePattern(pattern, bounds[p], bounds[p + 1]), schedule};
    part.schedule.tree.assign(phases[p].begin(), phases[p].end());
    shiftEquations(part.schedule, -bounds[p]);
    parts.push_back(std::move(part));
  }
  return parts;
}

} // namespace fusec::tiling

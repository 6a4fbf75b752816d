// Kernel packing (FusionStitching, section 4.1): equations that do not need each other run side by side in one kernel,
// each with blocks of its own, so that small ones fill a device together and one launch stands for all. Three
// projections of one tensor:
//
//   block m0:64 { block n0:64 { .. compute e0 .. } }      # blocks 0 to 23
//   block m1:64 { block n1:64 { .. compute e1 .. } }      # blocks 24 to 47
//   block m2:64 { block n2:64 { .. compute e2 .. } }      # blocks 48 to 71
//
// A part is what the pattern's values hold together, and takes the schedule that is best for it: alone on the device,
// or with its share of it. All parts have a block's units in common. Parts without a block loop (one block does all)
// are not packed.
#include "Cost/Cost.h"
#include "Tiling/CacheTraffic.h"
#include "Tiling/Pieces.h"
#include "Tiling/Work.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

/// Positions of equations that values of the pattern connect, in order of their first one.
std::vector<std::vector<int>> partsOf(const std::vector<const Equation *> &equations) {
  std::vector<int> part(equations.size());
  std::iota(part.begin(), part.end(), 0);
  std::map<TensorId, size_t> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    for (NodeId read : readsOf(*equations[e]))
      if (auto maker = makers.find(equations[e]->body[read].index); maker != makers.end()) {
        const int other = part[maker->second], own = part[e];
        std::replace(part.begin(), part.end(), std::max(other, own), std::min(other, own));
      }
    for (TensorId t : equations[e]->outputs)
      makers[t] = e;
  }
  std::map<int, std::vector<int>> groups;
  for (size_t e = 0; e < equations.size(); ++e)
    groups[part[e]].push_back(static_cast<int>(e));
  std::vector<std::vector<int>> out;
  for (auto &[first, group] : groups)
    out.push_back(std::move(group));
  return out;
}

/// One part with its schedules, whose equations are numbered within the part.
struct Part {
  std::vector<int> equations;
  ExprProgram program;
  std::string key;                  // equal for parts that differ in tensors only
  Candidates schedules;             // with block loops alone at the root
  std::vector<cost::Counts> counts; // of each schedule

  /// The fastest schedule with these units; nullptr where there is none.
  const Schedule *best(int units, const Target &target) const {
    const Schedule *found = nullptr;
    double least = 0;
    for (size_t s = 0; s < schedules.size(); ++s) {
      if (schedules[s].units != units)
        continue;
      const double seconds = cost::latency(counts[s], target);
      if (!found || seconds < least) {
        found = &schedules[s];
        least = seconds;
      }
    }
    return found;
  }

  /// Takes the schedules of an equal part, for the tensors of this one.
  void take(const Part &equal) {
    schedules = equal.schedules;
    counts = equal.counts;
    std::map<TensorId, TensorId> own;
    const std::vector<const Equation *> mine = scheduledEquations(program),
                                        theirs = scheduledEquations(equal.program);
    for (size_t e = 0; e < mine.size(); ++e)
      for (size_t o = 0; o < mine[e]->outputs.size(); ++o)
        own[theirs[e]->outputs[o]] = mine[e]->outputs[o];
    for (Schedule &s : schedules)
      for (EdgeLevel &edge : s.edges)
        edge.tensor = own.at(edge.tensor);
  }
};

/// What candidates and their counts depend on: the equations without the names of tensors, what each read is of, and
/// which values leave.
std::string keyOf(const ExprProgram &part) {
  std::string key;
  std::map<TensorId, size_t> makers;
  size_t made = 0;
  for (const Equation *e : scheduledEquations(part)) {
    key += canonicalText(*e, part) + "\n";
    for (const Axis &axis : e->axes)
      key += axis.extent.str(part.symbols) + ",";
    for (NodeId read : readsOf(*e)) {
      const TensorId t = e->body[read].index;
      auto maker = makers.find(t);
      key += maker != makers.end()                          ? "v" + std::to_string(maker->second)
             : part.tensors[t].kind == TensorKind::Constant ? "c"
                                                            : "i";
    }
    for (TensorId t : e->outputs) {
      key += part.tensors[t].kind == TensorKind::Temp ? "t" : "o";
      makers[t] = made++;
    }
  }
  return key;
}

/// False where the part has no schedule that is made of blocks.
bool schedule(Part &part, const Target &target) {
  for (Schedule &s : plainCandidates(part.program, target)) {
    if (s.tree.size() != 1 || !s.tree[0].isLoop || s.tree[0].loop != LoopKind::Block)
      continue;
    part.schedules.push_back(std::move(s));
  }
  WorkMeter meter(part.program, target);
  for (const Schedule &s : part.schedules)
    part.counts.push_back(meter.phases(s).front());
  return !part.schedules.empty();
}

void renumberEquations(Schedule &schedule, const std::vector<int> &equations) {
  for (ScheduleAxis &axis : schedule.axes)
    for (AxisUse &use : axis.uses)
      for (int &e : use.equations)
        e = equations[e];
  for (Operand &operand : schedule.operands)
    operand.equation = equations[operand.equation];
  std::function<void(std::vector<TreeNode> &)> visit = [&](std::vector<TreeNode> &nodes) {
    for (TreeNode &node : nodes) {
      if (!node.isLoop && node.leaf != LeafKind::Stage)
        node.target = equations[node.target];
      visit(node.children);
    }
  };
  visit(schedule.tree);
}

std::optional<Schedule> packed(const std::vector<Part> &parts, int units, const Target &target) {
  Schedule out;
  out.name = "pack-" + std::to_string(parts.size());
  out.units = units;
  for (size_t p = 0; p < parts.size(); ++p) {
    const Schedule *best = parts[p].best(units, target);
    if (!best)
      return std::nullopt;
    Schedule schedule = *best;
    out.lanes = schedule.lanes;
    renumberEquations(schedule, parts[p].equations);
    out.edges.insert(out.edges.end(), schedule.edges.begin(), schedule.edges.end());
    for (TreeNode &node : appendPiece(out, std::move(schedule), "." + std::to_string(p)))
      out.tree.push_back(std::move(node));
  }
  if (out.axes.size() > kMostAxes)
    return std::nullopt;
  return out;
}

} // namespace

Candidates packCandidates(const ExprProgram &pattern, const Target &target) {
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  if (scanOf(pattern) || equations.size() < 2)
    return {};
  for (const Equation *e : equations) {
    if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
      return {};
    for (const Axis &axis : e->axes)
      if (axis.extent.isConst(0))
        return {};
  }
  std::vector<std::vector<int>> groups = partsOf(equations);
  if (groups.size() < 2)
    return {};
  std::vector<Part> parts;
  for (std::vector<int> &group : groups) {
    Part part;
    part.program.symbols = pattern.symbols;
    part.program.tensors = pattern.tensors;
    part.program.inputs = pattern.inputs;
    part.program.outputs = pattern.outputs;
    std::set<TensorId> made;
    for (int e : group) {
      part.program.items.push_back(pattern.items[e]);
      made.insert(equations[e]->outputs.begin(), equations[e]->outputs.end());
    }
    for (size_t t = 0; t < part.program.tensors.size(); ++t)
      if (Tensor &tensor = part.program.tensors[t];
          tensor.kind == TensorKind::Temp && made.count(static_cast<TensorId>(t)) == 0)
        tensor.kind = TensorKind::Input; // another part's
    part.equations = std::move(group);
    parts.push_back(std::move(part));
  }
  std::map<std::string, const Part *> known;
  std::set<int> units;
  for (Part &part : parts) {
    part.key = keyOf(part.program);
    auto [it, isNew] = known.emplace(part.key, &part);
    if (!isNew)
      part.take(*it->second);
    else if (!schedule(part, target))
      return {};
    for (const Schedule &s : part.schedules)
      units.insert(s.units);
  }
  Target share = target;
  share.cores = std::max(1, target.cores / static_cast<int>(parts.size()));
  Candidates out;
  for (int u : units)
    for (const Target *place : {&std::as_const(share), &target})
      if (std::optional<Schedule> schedule = packed(parts, u, *place))
        out.push_back(std::move(*schedule));
  return out;
}

} // namespace fusec::tiling

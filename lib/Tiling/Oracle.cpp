#include "Tiling/Oracle.h"

#include "Expr/OpWeight.h"
#include "Expr/Rows.h"
#include "Tiling/Builder.h"
#include "Tiling/Phases.h"
#include "Tiling/StagedTile.h"
#include "Tiling/TopK.h"
#include "Tiling/Traffic.h"

#include <algorithm>
#include <cmath>

namespace fusec {

using namespace tiling;

namespace {

class Counter {
public:
  Counter(const Schedule &schedule, const ExprProgram &pattern, const Target &target)
      : schedule(schedule), pattern(pattern), target(target),
        equations(scheduledEquations(pattern)) {
    for (const Symbol &s : pattern.symbols)
      symbols.push_back(s.opt);
    counts.unitsPerBlock = 1;
    walk(schedule.tree, 1.0);
    const Traffic traffic = compulsoryTraffic(pattern);
    counts.readBytes = traffic.readBytes;
    counts.writtenBytes = traffic.writtenBytes;
    for (size_t t = 0; t < pattern.tensors.size(); ++t)
      if (goesOut(static_cast<TensorId>(t))) {
        double bytes = double(valueOf(numElements(pattern.tensors[t].shape))) *
                       sizeInBytes(pattern.tensors[t].type);
        counts.writtenBytes += bytes;
        counts.readBytes += bytes;
      }
  }
  cost::Counts counts;

private:
  /// A value inside the pattern that has no place closer: it goes to device memory and comes back.
  bool goesOut(TensorId t) const {
    return pattern.tensors[t].kind == TensorKind::Temp && !scanOf(pattern) &&
           std::none_of(schedule.edges.begin(), schedule.edges.end(),
                        [&](const EdgeLevel &edge) { return edge.tensor == t; });
  }

  int64_t valueOf(const DimExpr &e) const { return e.evaluate(symbols).value_or(1); }

  double tripOf(const TreeNode &node) const {
    if (node.axis == kStepAxis)
      return double(valueOf(scanOf(pattern)->steps));
    return std::ceil(double(tileOf(node.axis)) / double(node.step));
  }

  /// Elements of the axis below the loops of the path.
  int64_t tileOf(AxisId axis) const {
    int64_t tile = valueOf(schedule.axes[axis].extent);
    for (const TreeNode *loop : path)
      if (loop->axis == axis)
        tile = loop->step;
    return tile;
  }

  void walk(const std::vector<TreeNode> &nodes, double times) {
    for (const TreeNode &node : nodes) {
      if (!node.isLoop) {
        leaf(node, times);
        continue;
      }
      double trip = tripOf(node);
      if (node.loop == LoopKind::Block)
        counts.blocks *= trip;
      double inner =
          node.loop == LoopKind::Seq || node.loop == LoopKind::Unroll ? times * trip : times;
      if (node.loop == LoopKind::Unit)
        counts.unitsPerBlock = std::max(counts.unitsPerBlock, trip);
      path.push_back(&node);
      trips.push_back(trip);
      walk(node.children, inner);
      path.pop_back();
      trips.pop_back();
    }
  }

  /// A value that does not depend on an Unroll axis is computed once for all its iterations.
  double shared(const Equation &e, int equation, NodeId id) const {
    uint64_t axes = axisDependence(e.body, id);
    double factor = 1;
    for (size_t i = 0; i < path.size(); ++i) {
      if (path[i]->loop != LoopKind::Unroll || path[i]->axis < 0)
        continue;
      const ScheduleAxis &axis = schedule.axes[path[i]->axis];
      const AxisUse *use = axis.in(equation);
      bool depends = !use;
      for (size_t i = 0; use && i < use->positions.size(); ++i)
        depends = depends || (axes >> use->positions[i] & 1);
      if (!depends)
        factor /= trips[i];
    }
    return factor;
  }

  bool hasLanes(AxisId &axis) const {
    for (const TreeNode *loop : path)
      if (loop->loop == LoopKind::Lane) {
        axis = loop->axis;
        return true;
      }
    return false;
  }

  /// Elements of the operand's tile that each thread of the block copies.
  double copiesPerThread(const Operand &operand) const {
    double elements = 1;
    const Equation &e = *equations[operand.equation];
    for (int64_t extent :
         stagedExtents(schedule, e, operand, [&](AxisId axis) { return tileOf(axis); }))
      elements *= double(extent);
    return elements / (double(schedule.units) * double(schedule.lanes));
  }

  void leaf(const TreeNode &node, double times) {
    if (node.leaf == LeafKind::Stage) {
      counts.barriers += 2 * times;
      counts.vectorLoads +=
          2 * times * copiesPerThread(schedule.operands[node.target]); // and stores
      return;
    }
    if (node.leaf != LeafKind::Carry && equations[node.target]->kind == EquationKind::Opaque) {
      bool cpu = target.kind == TargetKind::Cpu;
      return addTopKWork(schedule, pattern, node, path, times, cpu, counts);
    }
    if (node.leaf == LeafKind::Combine) {
      counts.vectorOps += 10 * times;
      return;
    }
    if (node.leaf != LeafKind::Compute) {
      counts.vectorLoads += times;
      return;
    }
    const Equation &e = *equations[node.target];
    AxisId laneAxis = -1;
    bool lanes = hasLanes(laneAxis);
    std::vector<NodeId> reads = readsOf(e);
    for (size_t r = 0; r < reads.size(); ++r) {
      double loads = times * shared(e, node.target, reads[r]);
      bool operand =
          std::any_of(schedule.operands.begin(), schedule.operands.end(), [&](const Operand &o) {
            return o.equation == node.target && o.read == static_cast<int>(r);
          });
      bool strided = false;
      if (!operand && lanes && laneAxis >= 0) {
        std::optional<FlatAccess> access = flatAccess(e, reads[r], pattern);
        if (const AxisUse *use = schedule.axes[laneAxis].in(node.target)) {
          int position = use->positions.back();
          strided = !access ||
                    !(access->stride[position].isConst(0) || access->stride[position].isConst(1));
        }
      }
      if (strided)
        counts.gathers += loads * schedule.lanes;
      else
        counts.vectorLoads += loads;
    }
    for (NodeId id : e.body.reachable(rootsOf(e)))
      if (double weight = weightOf(e.body[id].op); weight > 0)
        counts.vectorOps += times * weight * shared(e, node.target, id);
    if (e.kind != EquationKind::Reduction)
      counts.vectorLoads += times;
  }

  const Schedule &schedule;
  const ExprProgram &pattern;
  const Target &target;
  std::vector<const Equation *> equations;
  std::vector<int64_t> symbols;
  std::vector<const TreeNode *> path;
  std::vector<double> trips;
};

/// The loops of the tree's first path, such as "mm m:26 n:64 m:2 m:1 n:16".
std::string describe(const Schedule &schedule) {
  std::string text = schedule.name;
  for (const Rewrite &rewrite : schedule.via)
    text += " via " + print(rewrite);
  const std::vector<TreeNode> *level = &schedule.tree;
  while (!level->empty()) {
    auto loop =
        std::find_if(level->begin(), level->end(), [](const TreeNode &n) { return n.isLoop; });
    if (loop == level->end())
      break;
    if (loop->axis >= 0)
      text += " " + schedule.axes[loop->axis].name + ":" + std::to_string(loop->step);
    level = &loop->children;
  }
  return text;
}

} // namespace

Candidates tiling::plainCandidates(const ExprProgram &pattern, const Target &target) {
  if (scanOf(pattern))
    return scanCandidates(pattern, target);
  std::vector<const Equation *> equations = scheduledEquations(pattern);
  const Equation &first = *equations[0];
  const bool finished = equations.size() == 2 && finishesReduction(first, *equations[1]) &&
                        pattern.tensors[first.outputs[0]].kind == TensorKind::Temp;
  if (equations.size() > 1 && !finished)
    return stitchCandidates(pattern, target);
  View view = makeView(pattern, target, 0, equations.size() == 2 ? 1 : -1);
  switch (first.kind) {
  case EquationKind::Map: return mapCandidates(view);
  case EquationKind::Scatter: return scatterCandidates(view);
  case EquationKind::Reduction:
    if (!isContraction(view))
      return reductionCandidates(view);
    return target.kind == TargetKind::Cpu ? cpuContractionCandidates(view)
                                          : gpuContractionCandidates(view);
  case EquationKind::Opaque: return topKCandidates(view);
  case EquationKind::Scan: break;
  }
  assert(false && "scans are patterns of their own");
  return Candidates{};
}

namespace {

/// The candidates of the pattern and of its alternatives, and what each of them is about.
struct AllCandidates {
  Candidates schedules;
  std::vector<RewrittenPattern> alternatives;
  std::vector<const ExprProgram *> programs; // of each schedule
};
AllCandidates allCandidates(const ExprProgram &pattern, const Target &target) {
  AllCandidates all;
  all.schedules = plainCandidates(pattern, target);
  all.programs.assign(all.schedules.size(), &pattern);
  all.alternatives = applicableAlternatives(pattern, target);
  for (const RewrittenPattern &alternative : all.alternatives)
    for (Schedule &schedule : plainCandidates(alternative.program, target)) {
      schedule.via = {alternative.rewrite};
      all.schedules.push_back(std::move(schedule));
      all.programs.push_back(&alternative.program);
    }
  return all;
}

/// Work of each phase of a schedule of these very equations.
std::vector<cost::Counts> countPhases(const Schedule &schedule, const ExprProgram &equations,
                                      const Target &target) {
  std::vector<cost::Counts> phases;
  for (const PhasePart &part : partsOf(schedule, equations))
    phases.push_back(Counter(part.schedule, part.pattern, target).counts);
  return phases;
}

} // namespace

Result<std::vector<Schedule>> candidateSchedules(const ExprProgram &pattern, const Target &target) {
  return allCandidates(pattern, target).schedules;
}

std::vector<cost::Counts> countWork(const Schedule &schedule, const ExprProgram &pattern,
                                    const Target &target) {
  const ScheduledPattern scheduled(schedule, pattern);
  return countPhases(schedule, scheduled.program(), target);
}

double predictedSeconds(const Schedule &schedule, const ExprProgram &pattern,
                        const Target &target) {
  return cost::latency(countWork(schedule, pattern, target), target);
}

Result<std::vector<ScheduleVariant>> bestSchedules(const ExprProgram &pattern, const Target &target,
                                                   const std::vector<int> &phaseStarts) {
  AllCandidates all;
  if (phaseStarts.empty()) {
    all = allCandidates(pattern, target);
  } else {
    all.schedules = phasedCandidates(pattern, target, phaseStarts);
    all.programs.assign(all.schedules.size(), &pattern);
  }
  if (all.schedules.empty())
    return std::vector<ScheduleVariant>{};
  ScheduleVariant best;
  size_t chosen = search::chooseLowest(
      all.schedules.size(),
      [&](size_t i) {
        return cost::latency(countPhases(all.schedules[i], *all.programs[i], target), target);
      },
      [&](size_t i) { return describe(all.schedules[i]); }, best.considered);
  best.schedule = std::move(all.schedules[chosen]);
  best.seconds = best.considered[chosen].score;
  std::vector<ScheduleVariant> variants;
  // A contraction whose tiles may be cut pays for its checks in code size and branches: one variant for symbols
  // that are multiples of 16 goes without.
  ScheduleVariant aligned = best;
  for (const ScheduleAxis &axis : best.schedule.axes) {
    std::vector<SymbolId> used;
    axis.extent.collectSymbols(used);
    for (SymbolId s : used)
      if (pattern.symbols[s].divisor % 16 != 0 && pattern.symbols[s].max >= 16 &&
          std::none_of(aligned.divisors.begin(), aligned.divisors.end(),
                       [&](const auto &d) { return d.first == s; }))
        aligned.divisors.push_back({s, 16});
  }
  View view = makeView(*all.programs[chosen], target, 0, -1);
  if (!aligned.divisors.empty() && !scanOf(pattern) && phaseStarts.empty() && isContraction(view))
    variants.push_back(std::move(aligned));
  variants.push_back(std::move(best));
  return variants;
}

} // namespace fusec

// Schedules of scans and scatters.
//
// A scan runs in one block, step after step; the equations of its body follow one another inside the step loop and
// keep their values in the block's own memory where they fit. Or all blocks take each step together (Rounds.h): the
// equations of a phase stand side by side, each with blocks of its own, maps that only read each other's element at
// their own place in one part. Two layers of an LSTM as one wavefront:
//
//   carry 0; barrier; seq step:1 { block m0:8 { .. compute e0 .. } block m1:8 { .. compute e1 .. } ..
//                                  barrier; block x:256 { .. compute e2; compute e3 .. } .. }
#include "Cost/Cost.h"
#include "Tiling/Pieces.h"
#include "Tiling/Rounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

Schedule scanSchedule(const ExprProgram &pattern, const Target &target, int64_t vectors,
                      int units) {
  const Equation &scan = *scanOf(pattern);
  Schedule schedule;
  schedule.name = "scan";
  schedule.units = units;
  schedule.lanes = target.lanes;
  int64_t budget = target.sharedBytesPerBlock;
  auto place = [&](TensorId tensor) {
    if (std::any_of(schedule.edges.begin(), schedule.edges.end(),
                    [&](const EdgeLevel &e) { return e.tensor == tensor; }))
      return;
    DimExpr elements = numElements(pattern.tensors[tensor].shape);
    if (!elements.isConst())
      return;
    int64_t bytes = roundUp(elements.constValue() * sizeInBytes(pattern.tensors[tensor].type), 128);
    if (bytes > budget)
      return;
    budget -= bytes;
    schedule.edges.push_back({tensor, MemLevel::Shared});
  };
  for (const ScanCarry &carry : scan.carries)
    place(carry.previous);
  auto isStacked = [&](TensorId t) {
    return std::any_of(scan.scanOutputs.begin(), scan.scanOutputs.end(),
                       [&](const ScanOutput &o) { return o.perStep == t; });
  };
  for (const Equation &e : scan.scanBody)
    for (TensorId t : e.outputs)
      if (!isStacked(t))
        place(t);
  TreeNode step = Builder::loop(LoopKind::Seq, kStepAxis, 1);
  for (size_t i = 0; i < scan.scanBody.size(); ++i) {
    View view = makeView(pattern, target, static_cast<int>(i), -1);
    Schedule piece;
    if (scan.scanBody[i].kind == EquationKind::Map)
      piece = mapPiece(view, units, 1);
    else if (units == 1 || view.reduction.empty())
      piece = units == 1 ? columnsPiece(view, vectors) : mapPiece(view, units, 1);
    else
      piece = rowsPiece(view, units);
    for (TreeNode &node : appendPiece(schedule, std::move(piece), std::to_string(i)))
      step.children.push_back(std::move(node));
  }
  step.children.push_back(Builder::leaf(LeafKind::Carry, 1));
  schedule.tree = {Builder::leaf(LeafKind::Carry, 0), step, Builder::leaf(LeafKind::Carry, 2)};
  return schedule;
}

/// Maps over the same points, in one tree: unit and lane walk the axis `x`.
std::vector<TreeNode> mapPart(Schedule &schedule, const std::vector<const Equation *> &equations,
                              const std::vector<int> &part, const std::string &name) {
  ScheduleAxis axis;
  axis.name = name;
  axis.extent = DimExpr(1);
  for (const Axis &a : equations[part[0]]->axes)
    axis.extent = axis.extent * a.extent;
  for (int e : part) {
    AxisUse use;
    for (size_t p = 0; p < equations[e]->axes.size(); ++p)
      if (!equations[e]->axes[p].extent.isConst(1))
        use.positions.push_back(static_cast<int>(p));
    if (use.positions.empty())
      return {};
    use.equations = {e};
    axis.uses.push_back(std::move(use));
  }
  const auto x = static_cast<AxisId>(schedule.axes.size());
  schedule.axes.push_back(std::move(axis));
  std::vector<TreeNode> computes;
  for (int e : part)
    computes.push_back(Builder::leaf(LeafKind::Compute, e));
  return {Builder::nest(
      {Builder::loop(LoopKind::Block, x, int64_t{schedule.units} * schedule.lanes),
       Builder::loop(LoopKind::Unit, x, schedule.lanes), Builder::loop(LoopKind::Lane, x, 1)},
      std::move(computes))};
}

/// One reduction, its lanes along the innermost reduced axis; a unit makes `rows` outputs at once, which share what
/// they read of the states.
std::vector<TreeNode> reductionPart(Schedule &schedule, const ExprProgram &pattern,
                                    const Target &target, int equation, int64_t rows) {
  const View view = makeView(pattern, target, equation, -1);
  if (view.spatial.empty() || view.reduction.empty())
    return {};
  Builder b(view, "rows", schedule.units, schedule.lanes);
  std::vector<TreeNode> reduce;
  for (size_t g = 0; g < view.reduction.size(); ++g) {
    AxisId k = b.addReduction("k" + std::to_string(g), {view.reduction[g]});
    const bool last = g + 1 == view.reduction.size();
    reduce.push_back(Builder::loop(LoopKind::Seq, k, last ? schedule.lanes : 1));
    if (last) {
      reduce.push_back(TreeNode()); // over the rows
      reduce.push_back(Builder::loop(LoopKind::Lane, k, 1));
    }
  }
  AxisId m = b.addSpatial("m", view.spatial);
  const TreeNode all = Builder::loop(LoopKind::Unroll, m, 1);
  reduce[reduce.size() - 2] = all;
  auto ofRows = [&](LeafKind kind) {
    return Builder::nest({all}, {Builder::leaf(kind, equation)});
  };
  b.schedule.tree = {Builder::nest(
      {Builder::loop(LoopKind::Block, m, rows * schedule.units),
       Builder::loop(LoopKind::Unit, m, rows)},
      {ofRows(LeafKind::Init), Builder::nest(reduce, {Builder::leaf(LeafKind::Compute, equation)}),
       ofRows(LeafKind::Combine), ofRows(LeafKind::Store)})};
  return appendPiece(schedule, std::move(b.schedule), std::to_string(equation));
}

/// The phases of a step, in which every equation is spread over blocks of its own; nothing where one cannot be.
std::optional<Schedule> roundsSchedule(const ExprProgram &pattern, const Target &target, int units,
                                       int64_t rows) {
  const Equation &scan = *scanOf(pattern);
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  std::set<TensorId> states;
  for (const ScanCarry &carry : scan.carries)
    if (!states.insert(carry.next).second || !states.insert(carry.previous).second)
      return std::nullopt;
  Schedule schedule;
  schedule.name = "rounds";
  schedule.units = units;
  schedule.lanes = target.lanes;
  constexpr size_t kMostEquations =
      80; // a block finds its part among those of a phase by tests in each other
  if (equations.empty() || equations.size() > kMostEquations)
    return std::nullopt;
  const std::vector<int> phases = phasesOfStep(pattern);
  // Maps join the part whose values they read at their own place in the same phase.
  std::vector<int> partOf(equations.size());
  std::map<TensorId, int> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    partOf[e] = static_cast<int>(e);
    for (NodeId read : readsOf(*equations[e]))
      if (auto maker = makers.find(equations[e]->body[read].index);
          maker != makers.end() && phases[maker->second] == phases[e]) {
        const int from = partOf[e], to = partOf[maker->second];
        std::replace(partOf.begin(), partOf.begin() + static_cast<std::ptrdiff_t>(e) + 1,
                     std::max(from, to), std::min(from, to));
      }
    for (TensorId t : equations[e]->outputs)
      makers[t] = static_cast<int>(e);
  }
  TreeNode step = Builder::loop(LoopKind::Seq, kStepAxis, 1);
  const int last = *std::max_element(phases.begin(), phases.end());
  for (int phase = 0; phase <= last; ++phase) {
    if (phase > 0)
      step.children.push_back(Builder::leaf(LeafKind::Barrier, -1));
    for (int first = 0; first < static_cast<int>(equations.size()); ++first) {
      std::vector<int> part;
      for (int e = first; e < static_cast<int>(equations.size()); ++e)
        if (partOf[e] == first && phases[e] == phase)
          part.push_back(e);
      if (part.empty())
        continue;
      const bool maps = equations[first]->kind == EquationKind::Map;
      if (!maps && equations[first]->kind != EquationKind::Reduction)
        return std::nullopt;
      std::vector<TreeNode> nodes =
          maps ? mapPart(schedule, equations, part, "x" + std::to_string(first))
               : reductionPart(schedule, pattern, target, first, rows);
      if (nodes.empty())
        return std::nullopt;
      step.children.push_back(std::move(nodes[0]));
    }
  }
  schedule.tree = {Builder::leaf(LeafKind::Carry, 0), Builder::leaf(LeafKind::Barrier, -1),
                   std::move(step)};
  if (std::any_of(scan.carries.begin(), scan.carries.end(),
                  [](const ScanCarry &carry) { return carry.final >= 0; })) {
    schedule.tree.push_back(Builder::leaf(LeafKind::Barrier, -1));
    schedule.tree.push_back(Builder::leaf(LeafKind::Carry, 2));
  }
  return schedule;
}

} // namespace

Candidates scanCandidates(const ExprProgram &pattern, const Target &target) {
  if (target.kind == TargetKind::Cpu)
    return {scanSchedule(pattern, target, 8, 1), scanSchedule(pattern, target, 4, 1)};
  Candidates out = {scanSchedule(pattern, target, 1, 1024 / target.lanes),
                    scanSchedule(pattern, target, 1, 256 / target.lanes)};
  if (cost::joinsPhases(target))
    for (int64_t rows : {1, 4, 8})
      if (std::optional<Schedule> rounds =
              roundsSchedule(pattern, target, 256 / target.lanes, rows))
        out.push_back(std::move(*rounds));
  return out;
}

/// Axes that address a dimension of the output one to one cannot collide: they run in parallel. The others keep
/// their order, so that duplicates are combined in index order.
Candidates scatterCandidates(const View &view) {
  const Equation &e = view.equation();
  int lanes = view.target->lanes, units = view.target->kind == TargetKind::Cpu ? 1 : 256 / lanes;
  auto independent = [&](int position) {
    return std::any_of(e.scatterIndex.begin(), e.scatterIndex.end(), [&](NodeId id) {
      return e.body[id].op == ScalarOp::Axis && e.body[id].index == position;
    });
  };
  Candidates out;
  for (bool vectors : {true, false}) {
    Builder b(view, vectors ? "scatter" : "scatter-rows", units, lanes);
    std::vector<TreeNode> blocks, ordered, inner;
    bool usedLanes = false;
    for (size_t p = e.axes.size(); p-- > 0;) {
      if (e.axes[p].extent.isConst(1))
        continue;
      AxisId axis = b.addSpatial("i" + std::to_string(p), {{static_cast<int>(p)}});
      if (!independent(static_cast<int>(p))) {
        ordered.insert(ordered.begin(), Builder::loop(LoopKind::Seq, axis, 1));
      } else if (vectors && !usedLanes) {
        usedLanes = true;
        blocks.insert(blocks.begin(), Builder::loop(LoopKind::Block, axis, int64_t{lanes} * units));
        if (units > 1)
          inner.push_back(Builder::loop(LoopKind::Unit, axis, lanes));
        inner.push_back(Builder::loop(LoopKind::Lane, axis, 1));
      } else {
        blocks.insert(blocks.begin(), Builder::loop(LoopKind::Block, axis, 1));
      }
    }
    blocks.insert(blocks.end(), ordered.begin(), ordered.end());
    blocks.insert(blocks.end(), inner.begin(), inner.end());
    TreeNode compute = Builder::leaf(LeafKind::Compute, view.first);
    b.schedule.tree = {blocks.empty() ? compute : Builder::nest(blocks, {compute})};
    out.push_back(b.schedule);
  }
  return out;
}

} // namespace fusec::tiling

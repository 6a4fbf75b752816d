// Schedules of scans and scatters.
//
// A scan runs in one block, step after step; the equations of its body follow one another inside the step loop and
// keep their values in the block's own memory where they fit. Wavefronts over several scans are an Expr transform.
#include "Tiling/Builder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// Adds the axes and operands of `piece` to `into` and returns its tree with the new numbers.
std::vector<TreeNode> append(Schedule &into, Schedule piece, const std::string &suffix) {
  AxisId axisBase = static_cast<AxisId>(into.axes.size());
  int operandBase = static_cast<int>(into.operands.size());
  for (ScheduleAxis &axis : piece.axes) {
    axis.name += suffix;
    into.axes.push_back(std::move(axis));
  }
  for (Operand &operand : piece.operands) {
    operand.name += suffix;
    for (LayoutDigit &digit : operand.digits)
      digit.axis = digit.axis >= 0 ? digit.axis + axisBase : digit.axis;
    into.operands.push_back(std::move(operand));
  }
  std::function<void(std::vector<TreeNode> &)> renumber = [&](std::vector<TreeNode> &nodes) {
    for (TreeNode &node : nodes) {
      if (node.isLoop) {
        node.axis += axisBase;
        renumber(node.children);
      } else if (node.leaf == LeafKind::Stage) {
        node.target += operandBase;
      }
    }
  };
  renumber(piece.tree);
  return std::move(piece.tree);
}

Schedule stepMap(const View &view, int units) {
  Builder b(view, "step", units, view.target->lanes);
  TreeNode compute = Builder::leaf(LeafKind::Compute, view.first);
  if (view.spatial.empty()) {
    b.schedule.tree = {compute};
    return b.schedule;
  }
  AxisId x = b.addSpatial("x", view.spatial);
  std::vector<TreeNode> loops = {
      Builder::loop(LoopKind::Seq, x, int64_t{units} * view.target->lanes)};
  if (units > 1)
    loops.push_back(Builder::loop(LoopKind::Unit, x, view.target->lanes));
  loops.push_back(Builder::loop(LoopKind::Lane, x, 1));
  b.schedule.tree = {Builder::nest(loops, {compute})};
  return b.schedule;
}

/// CPU: vectors along the last spatial axis, with packed weights; enough of them to hide the fma's latency.
Schedule stepColumns(const View &view, int64_t maxVectors) {
  constexpr int64_t kPanel = 16;
  int lanes = view.target->lanes;
  Builder b(view, "step", 1, lanes);
  std::vector<TreeNode> around, reduce;
  std::vector<std::pair<AxisId, const std::vector<int> *>> outer;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g) {
    AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
    outer.push_back({axis, &view.spatial[g]});
    around.push_back(Builder::loop(LoopKind::Seq, axis, 1));
  }
  std::vector<AxisId> reduced;
  for (const auto &group : view.reduction) {
    reduced.push_back(b.addReduction("k" + std::to_string(reduced.size()), {group}));
    reduce.push_back(Builder::loop(LoopKind::Seq, reduced.back(), 1));
  }
  auto nestAll = [](std::vector<TreeNode> loops, std::vector<TreeNode> children) {
    return loops.empty() ? children : std::vector<TreeNode>{Builder::nest(loops, children)};
  };
  std::vector<TreeNode> init = {Builder::leaf(LeafKind::Init, view.first)};
  std::vector<TreeNode> compute = {Builder::leaf(LeafKind::Compute, view.first)};
  std::vector<TreeNode> store = {Builder::leaf(LeafKind::Store, view.first)};
  if (!view.spatial.empty()) {
    const std::vector<int> &last = view.spatial.back();
    AxisId n = b.addSpatial("n", {last});
    int64_t vectors = std::clamp<int64_t>(roundUp(view.opt(last), lanes) / lanes, 1, maxVectors);
    around.push_back(Builder::loop(LoopKind::Seq, n, vectors * lanes));
    for (auto *leaf : {&init, &compute, &store})
      *leaf = {Builder::nest(
          {Builder::loop(LoopKind::Unroll, n, lanes), Builder::loop(LoopKind::Lane, n, 1)}, *leaf)};
    for (const ReadInfo &read : readInfos(view)) {
      if (!read.constant || !read.access || read.guarded || !read.dependsOn(last) ||
          view.reduction.empty())
        continue;
      Operand operand;
      operand.name = "w" + std::to_string(b.schedule.operands.size());
      operand.equation = view.first;
      operand.read = read.ordinal;
      operand.level = MemLevel::Global;
      for (const auto &[axis, group] : outer)
        if (read.dependsOn(*group))
          operand.digits.push_back({axis});
      operand.digits.push_back({n, -1, kPanel, 0});
      for (AxisId r : reduced)
        operand.digits.push_back({r});
      operand.digits.push_back({n, -1, 1, kPanel});
      b.schedule.operands.push_back(std::move(operand));
    }
  }
  std::vector<TreeNode> body = init;
  std::vector<TreeNode> middle = nestAll(reduce, compute);
  body.insert(body.end(), middle.begin(), middle.end());
  body.insert(body.end(), store.begin(), store.end());
  b.schedule.tree = nestAll(around, body);
  return b.schedule;
}

/// GPU: a unit takes one output, its lanes walk the innermost reduced axis.
Schedule stepRows(const View &view, int units) {
  int lanes = view.target->lanes;
  Builder b(view, "step", units, lanes);
  std::vector<TreeNode> reduce;
  for (size_t g = 0; g < view.reduction.size(); ++g) {
    AxisId k = b.addReduction("k" + std::to_string(g), {view.reduction[g]});
    bool last = g + 1 == view.reduction.size();
    reduce.push_back(Builder::loop(LoopKind::Seq, k, last ? lanes : 1));
    if (last)
      reduce.push_back(Builder::loop(LoopKind::Lane, k, 1));
  }
  std::vector<TreeNode> row = {
      Builder::leaf(LeafKind::Init, view.first),
      Builder::nest(reduce, {Builder::leaf(LeafKind::Compute, view.first)}),
      Builder::leaf(LeafKind::Combine, view.first), Builder::leaf(LeafKind::Store, view.first)};
  if (view.spatial.empty()) {
    b.schedule.tree = row;
    return b.schedule;
  }
  AxisId m = b.addSpatial("m", view.spatial);
  b.schedule.tree = {Builder::nest(
      {Builder::loop(LoopKind::Seq, m, units), Builder::loop(LoopKind::Unit, m, 1)}, row)};
  return b.schedule;
}

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
      piece = stepMap(view, units);
    else if (units == 1 || view.reduction.empty())
      piece = units == 1 ? stepColumns(view, vectors) : stepMap(view, units);
    else
      piece = stepRows(view, units);
    for (TreeNode &node : append(schedule, std::move(piece), std::to_string(i)))
      step.children.push_back(std::move(node));
  }
  step.children.push_back(Builder::leaf(LeafKind::Carry, 1));
  schedule.tree = {Builder::leaf(LeafKind::Carry, 0), step, Builder::leaf(LeafKind::Carry, 2)};
  return schedule;
}

} // namespace

Candidates scanCandidates(const ExprProgram &pattern, const Target &target) {
  if (target.kind == TargetKind::Cpu)
    return {scanSchedule(pattern, target, 8, 1), scanSchedule(pattern, target, 4, 1)};
  return {scanSchedule(pattern, target, 1, 1024 / target.lanes),
          scanSchedule(pattern, target, 1, 256 / target.lanes)};
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

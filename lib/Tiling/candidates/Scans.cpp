// Schedules of scans and scatters.
//
// A scan runs in one block, step after step; the equations of its body follow one another inside the step loop and
// keep their values in the block's own memory where they fit. Or all blocks take each step together
// (GridScans.cpp).
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

Schedule scanSchedule(const ScheduledProgram &program, const Target &target, int64_t vectors,
                      int units) {
  const Equation &scan = *program.scan;
  Schedule schedule;
  schedule.name = GeneratorName("scan");
  schedule.units = units;
  schedule.lanes = target.lanes;
  int64_t budget = target.sharedBytesPerBlock;
  auto place = [&](TensorId tensor) {
    if (std::ranges::any_of(schedule.edges, [&](const EdgeLevel &e) { return e.tensor == tensor; }))
      return;
    const std::optional<int64_t> most =
        program.mostOf(numElements(program.expr.tensors[tensor].shape));
    if (!most)
      return;
    const int64_t bytes = roundUp(*most * sizeInBytes(program.expr.tensors[tensor].type), 128);
    if (bytes > budget)
      return;
    budget -= bytes;
    schedule.edges.push_back({tensor, MemLevel::Shared});
  };
  for (const ScanCarry &carry : scan.carries)
    place(carry.previous);
  auto isStacked = [&](TensorId t) {
    return std::ranges::any_of(scan.scanOutputs,
                               [&](const ScanOutput &o) { return o.perStep == t; });
  };
  for (const Equation &e : scan.scanBody)
    for (TensorId t : e.outputs)
      if (!isStacked(t))
        place(t);
  LoopNode step = ScheduleBuilder::loop(LoopKind::Seq, kStepAxis, 1);
  for (size_t i = 0; i < scan.scanBody.size(); ++i) {
    View view = makeView(program, target, static_cast<int>(i), -1);
    Schedule piece;
    if (scan.scanBody[i].kind == EquationKind::Map)
      piece = mapLoops(view, units, 1);
    else
      piece = units == 1 ? columnLoops(view, vectors) : rowLoops(view, units);
    for (TreeNode &node : spliceLoops(schedule, std::move(piece), std::to_string(i)))
      step.children.push_back(std::move(node));
  }
  step.children.push_back(LeafNode{.kind = LeafKind::Carry, .carry = 1});
  schedule.tree = {LeafNode{.kind = LeafKind::Carry, .carry = 0}, std::move(step),
                   LeafNode{.kind = LeafKind::Carry, .carry = 2}};
  return schedule;
}

} // namespace

Candidates scanCandidates(const ScheduledProgram &program, const Target &target) {
  Candidates out;
  if (target.vectorLanes)
    out = {scanSchedule(program, target, 8, 1), scanSchedule(program, target, 4, 1)};
  else
    out = {scanSchedule(program, target, 1, 1024 / target.lanes),
           scanSchedule(program, target, 1, 256 / target.lanes)};
  for (Schedule &rounds : gridScanCandidates(program, target))
    out.push_back(std::move(rounds));
  return out;
}

/// Axes that address a dimension of the output one to one cannot collide: they run in parallel. The others keep
/// their order, so that duplicates are combined in index order.
Candidates scatterCandidates(const View &view) {
  const Equation &e = view.equation();
  int lanes = view.target->lanes, units = view.target->unitsOf(256);
  Candidates out;
  for (bool vectors : {true, false}) {
    ScheduleBuilder b(view, vectors ? GeneratorName("scatter") : GeneratorName("scatter-rows"),
                      units, lanes);
    std::vector<LoopNode> blocks, ordered, inner;
    bool usedLanes = false;
    for (size_t p = e.axes.size(); p-- > 0;) {
      if (e.axes[p].extent.isConst(1))
        continue;
      AxisId axis = b.addSpatial("i" + std::to_string(p), {{static_cast<int>(p)}});
      if (!hasOwnElements(e, static_cast<int>(p))) {
        ordered.insert(ordered.begin(), ScheduleBuilder::loop(LoopKind::Seq, axis, 1));
      } else if (vectors && !usedLanes) {
        usedLanes = true;
        blocks.insert(blocks.begin(),
                      ScheduleBuilder::loop(LoopKind::Block, axis, int64_t{lanes} * units));
        if (units > 1)
          inner.push_back(ScheduleBuilder::loop(LoopKind::Unit, axis, lanes));
        inner.push_back(ScheduleBuilder::loop(LoopKind::Lane, axis, 1));
      } else {
        blocks.insert(blocks.begin(), ScheduleBuilder::loop(LoopKind::Block, axis, 1));
      }
    }
    blocks.insert(blocks.end(), ordered.begin(), ordered.end());
    blocks.insert(blocks.end(), inner.begin(), inner.end());
    TreeNode compute = ScheduleBuilder::leaf(LeafKind::Compute, view.first);
    b.schedule.tree = {blocks.empty() ? compute : ScheduleBuilder::nest(blocks, {compute})};
    out.push_back(b.schedule);
  }
  return out;
}

} // namespace fusec::tiling

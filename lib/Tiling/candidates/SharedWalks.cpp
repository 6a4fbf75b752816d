// Schedules of a contraction whose walk over k also serves reductions of its rows (Expr/SharedWalk.h). The tree is
// that of the contraction alone; a row's reduction has its lanes along k: one of its steps takes as many terms as there
// are lanes. RMSNorm's sum of squares e0 in a tile of y = x w with e2 = e1 rsqrt(e0), on a GPU
//
//   unit m:1 { unroll m:1 { init e0 } unroll m:1 { .. init e1 } }
//   seq k:32 { stage s0 stage s1
//     unit m:1 { unroll m:1 { lane k:1 { compute e0 } }
//       seq k:1 { unroll m:1 { .. compute e1 } } } }
//   unit m:1 { unroll m:1 { combine e0 } unroll m:1 { .. compute e2 } }
//
// and on a CPU, where the sums would take registers from the tile and the rows stay in the caches, in front of it:
//
//   unroll m:1 { init e0 } unroll m:1 { .. init e1 }
//   seq k:16 { unroll m:1 { unroll k:8 { lane k:1 { compute e0 } } } }
//   seq k:1 { unroll m:1 { .. compute e1 } }
//   unroll m:1 { combine e0 } unroll m:1 { .. compute e2 }
//
// What the columns share of the terms (Expr/transforms/SharedFactor.cpp) is made in front of each of a GPU's steps:
//
//   seq k:32 { stage s0 unit m:1 { unroll m:1 { lane k:1 { compute e1 } } } unit m:1 { .. } }
//
// Every tile of columns sums its rows again: what pays where few of them share a row, or where the contraction waits
// for memory.
#include "Expr/SharedWalk.h"
#include "Expr/transforms/Profile.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ScheduleBuilder.h"

#include <algorithm>
#include <map>
#include <optional>

namespace fusec::tiling {

namespace {

bool holds(const TreeNode &node, LeafKind kind, int equation) {
  if (const LeafNode *leaf = node.leaf())
    return leaf->kind == kind && leaf->equation == equation;
  return std::ranges::any_of(node.children(),
                             [&](const TreeNode &child) { return holds(child, kind, equation); });
}

bool isTile(const TreeNode &node) {
  return node.leaf() || node.loop(LoopKind::Unroll) || node.loop(LoopKind::Lane);
}

/// Adds one of the walk's other equations to the contraction's schedule.
class SharedWalkBuilder {
public:
  SharedWalkBuilder(const View &view, const SharedWalk &walk, int own, Schedule &schedule)
      : equations(view.program->equations), walk(walk), own(own), schedule(schedule),
        target(*view.target), isFactor(own == walk.factor) {}

  /// False where the contraction's loops take some of its axes together with columns, or lanes along them, or have no
  /// place for it.
  bool join() {
    schedule.edges.push_back(
        {equations[own]->outputs[0], isFactor ? MemLevel::Shared : MemLevel::Register});
    if (!addAxes() || !findLoops(schedule.tree))
      return false;
    schedule.tree = withOwn(schedule.tree, nullptr);
    return placed;
  }

private:
  /// Its axis in place of the contraction's; -1: none.
  int axisFor(int position) const {
    const Equation &e = *equations[own], &contraction = *equations[walk.contraction];
    if (isFactor) {
      auto place = std::ranges::find(walk.factorAxes, position);
      return place == walk.factorAxes.end() ? -1
                                            : static_cast<int>(place - walk.factorAxes.begin());
    }
    if (position >= contraction.numSpatial)
      return position - contraction.numSpatial + e.numSpatial;
    return position < e.numSpatial && !e.axes[position].extent.isConst(1) ? position : -1;
  }

  bool addAxes() {
    for (ScheduleAxis &axis : schedule.axes) {
      const AxisUse *use = axis.in(walk.contraction);
      if (!use)
        continue;
      AxisUse mine{use->reduction && !isFactor, {}, {own}};
      for (int position : use->positions)
        if (const int p = axisFor(position); p >= 0)
          mine.positions.push_back(p);
      if (mine.positions.empty())
        continue;
      if (mine.positions.size() != use->positions.size())
        return false;
      auto same = std::ranges::find_if(axis.uses, [&](const AxisUse &u) {
        return u.reduction == mine.reduction && u.positions == mine.positions;
      });
      if (same == axis.uses.end())
        axis.uses.push_back(std::move(mine));
      else
        same->equations.push_back(own);
    }
    return true;
  }

  bool isReduced(const LoopNode &loop) const {
    return schedule.axes[loop.axis].in(walk.contraction)->reduction;
  }
  bool isOwn(const LoopNode &loop) const { return schedule.axes[loop.axis].in(own) != nullptr; }

  /// The loops of the register tile that are its own, and the reduced ones.
  bool findLoops(const std::vector<TreeNode> &nodes) {
    for (const TreeNode &node : nodes) {
      const LoopNode *loop = node.loop();
      if (!loop)
        continue;
      if (isReduced(*loop) && loop->kind == LoopKind::Seq && holdsCompute(node))
        reduced.push_back(loop);
      if (!isReduced(*loop) && isTile(node) && isOwn(*loop) && holdsInit(node)) {
        if (loop->kind == LoopKind::Lane)
          return false;
        tile.push_back(ScheduleBuilder::loop(loop->kind, loop->axis, loop->step));
        rowsOfTile *= std::max<int64_t>(1, stepAround[loop->axis] / loop->step);
      }
      stepAround[loop->axis] = loop->step;
      if (!findLoops(loop->children))
        return false;
    }
    return true;
  }

  bool holdsInit(const TreeNode &node) const {
    return holds(node, LeafKind::Init, walk.contraction);
  }
  bool holdsCompute(const TreeNode &node) const {
    return holds(node, LeafKind::Compute, walk.contraction);
  }

  TreeNode overTile(TreeNode inner) const {
    return tile.empty() ? inner : ScheduleBuilder::nest(tile, {std::move(inner)});
  }

  /// `step`: the loop around over as many steps of k as there are lanes.
  std::vector<TreeNode> withOwn(const std::vector<TreeNode> &nodes, const LoopNode *step) {
    std::vector<TreeNode> out;
    for (const TreeNode &node : nodes) {
      if (isTile(node)) {
        if (!isFactor && holdsInit(node))
          out.push_back(overTile(ScheduleBuilder::leaf(LeafKind::Init, own)));
        if (!isFactor && holds(node, LeafKind::Compute, walk.finish))
          out.push_back(overTile(ScheduleBuilder::leaf(LeafKind::Combine, own)));
        out.push_back(node);
        continue;
      }
      const LoopNode &loop = *node.loop();
      const bool reduces = isReduced(loop) && holdsCompute(node);
      if (isFactor && step && loop.kind == LoopKind::Unit && isOwn(loop))
        out.push_back(
            ScheduleBuilder::nest({ScheduleBuilder::loop(loop.kind, loop.axis, loop.step)},
                                  {overTile(overLanes(step->axis))}));
      else if (!isFactor && reduces && !placed && target.vectorLanes)
        out.push_back(ownWalk());
      else if (!isFactor && reduces && !placed && step)
        out.push_back(overTile(overLanes(loop.axis)));
      LoopNode with = loop;
      with.children = withOwn(loop.children, reduces && loop.step == schedule.lanes ? &loop : step);
      out.push_back(std::move(with));
    }
    return out;
  }

  TreeNode overLanes(AxisId k) {
    placed = true;
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, k, 1)},
                                 {ScheduleBuilder::leaf(LeafKind::Compute, own)});
  }

  /// In front of the contraction's loops over k, along the innermost of them.
  TreeNode ownWalk() {
    std::vector<LoopNode> loops;
    for (const LoopNode *loop : reduced)
      if (loop != reduced.back())
        loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, loop->axis, 1));
    const AxisId k = reduced.back()->axis;
    // Sums that wait for their last terms, as many side by side as the ports take meanwhile.
    const int64_t sums = int64_t{target.core.fmaCycles} * target.core.fmaPorts;
    const int64_t vectors = (sums + rowsOfTile - 1) / rowsOfTile;
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, vectors * schedule.lanes));
    loops.insert(loops.end(), tile.begin(), tile.end());
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, schedule.lanes));
    return ScheduleBuilder::nest(loops, {overLanes(k)});
  }

  const std::vector<const Equation *> &equations;
  const SharedWalk &walk;
  const int own;
  Schedule &schedule;
  const Target &target;
  const bool isFactor;
  std::vector<LoopNode> tile;
  int64_t rowsOfTile = 1;
  std::map<AxisId, int64_t> stepAround;  // of the loops met so far
  std::vector<const LoopNode *> reduced; // outermost first
  bool placed = false;
};

} // namespace

Candidates sharedWalkCandidates(const ScheduledProgram &program, const Target &target) {
  const std::optional<SharedWalk> walk = sharedWalk(program.equations);
  if (!walk)
    return {};
  const View view = makeView(program, target, walk->contraction, walk->finish);
  if (!sharesFactor(view.equation()))
    return {};
  std::vector<int> others = walk->rows;
  if (walk->factor >= 0)
    others.push_back(walk->factor);
  Candidates out;
  for (Schedule &schedule : target.vectorLanes ? cpuContractionCandidates(view)
                                               : gpuContractionCandidates(view, target.lanes))
    if (std::ranges::all_of(
            others, [&](int own) { return SharedWalkBuilder(view, *walk, own, schedule).join(); }))
      out.push_back(std::move(schedule));
  return out;
}

} // namespace fusec::tiling

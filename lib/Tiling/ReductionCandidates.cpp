// Schedules of reductions that are not contractions: lanes along the reduced axis (rows) or along the last spatial
// axis (columns, windows).
#include "Tiling/Builder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// Lanes walk the innermost reduced axis; partial results are combined over the lanes.
/// CPU: a block takes several rows. GPU: a unit takes a row, or the whole block does when rows are few.
Schedule rowReduction(const View &view, int unroll, bool wholeBlock) {
  const Target &target = *view.target;
  bool cpu = target.kind == TargetKind::Cpu;
  int lanes = target.lanes, units = cpu ? 1 : 256 / lanes;
  Builder b(view, wholeBlock ? "block-row" : "row", units, lanes);
  b.registerEdges();
  std::vector<AxisId> outer;
  for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
    outer.push_back(b.addReduction("r" + std::to_string(g), {view.reduction[g]}));
  AxisId k = b.addReduction("k", {view.reduction.back()});
  int64_t length = view.opt(view.reduction.back());
  int64_t perUnit = std::min<int64_t>(int64_t{lanes} * unroll, roundUp(length, lanes));

  std::vector<TreeNode> loops;
  for (AxisId r : outer)
    loops.push_back(Builder::loop(LoopKind::Seq, r, 1));
  if (wholeBlock && units > 1) {
    loops.push_back(Builder::loop(LoopKind::Seq, k, perUnit * units));
    loops.push_back(Builder::loop(LoopKind::Unit, k, perUnit));
  } else {
    loops.push_back(Builder::loop(LoopKind::Seq, k, perUnit));
  }
  loops.push_back(Builder::loop(LoopKind::Unroll, k, lanes));
  loops.push_back(Builder::loop(LoopKind::Lane, k, 1));
  std::vector<TreeNode> row = {Builder::leaf(LeafKind::Init, view.first),
                               Builder::nest(loops, {Builder::leaf(LeafKind::Compute, view.first)}),
                               Builder::leaf(LeafKind::Combine, view.first), b.finishLeaf()};
  if (view.spatial.empty()) {
    b.schedule.tree = row;
    return b.schedule;
  }
  AxisId m = b.addSpatial("m", view.spatial);
  std::vector<TreeNode> around;
  if (cpu) {
    int64_t rows = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, length));
    around = {Builder::loop(LoopKind::Block, m, rows), Builder::loop(LoopKind::Seq, m, 1)};
  } else if (wholeBlock) {
    around = {Builder::loop(LoopKind::Block, m, 1)};
  } else {
    around = {Builder::loop(LoopKind::Block, m, units), Builder::loop(LoopKind::Unit, m, 1)};
  }
  b.schedule.tree = {Builder::nest(around, row)};
  return b.schedule;
}

/// Lanes walk the last spatial axis; each lane reduces on its own. `threads`: of a block, on a GPU.
Schedule columnReduction(const View &view, int unroll, int threads) {
  const Target &target = *view.target;
  bool cpu = target.kind == TargetKind::Cpu;
  int lanes = target.lanes, units = cpu ? 1 : threads / lanes;
  Builder b(view, "column", units, lanes);
  b.registerEdges();
  std::vector<AxisId> reduced;
  for (size_t g = 0; g < view.reduction.size(); ++g)
    reduced.push_back(b.addReduction("r" + std::to_string(g), {view.reduction[g]}));
  std::vector<TreeNode> around;
  AxisId x;
  int64_t vector = int64_t{lanes} * unroll;
  if (view.spatial.empty()) { // a scalar result: one lane does everything
    std::vector<TreeNode> loops;
    for (AxisId r : reduced)
      loops.push_back(Builder::loop(LoopKind::Seq, r, 1));
    TreeNode compute = Builder::leaf(LeafKind::Compute, view.first);
    b.schedule.tree = {Builder::leaf(LeafKind::Init, view.first),
                       loops.empty() ? compute : Builder::nest(loops, {compute}), b.finishLeaf()};
    return b.schedule;
  }
  bool fuse = !cpu || (view.spatial.size() > 1 && view.opt(view.spatial.back()) * 2 <= lanes);
  if (fuse) {
    x = b.addSpatial("x", view.spatial);
    if (cpu) {
      around = {Builder::loop(LoopKind::Block, x, vector * 8),
                Builder::loop(LoopKind::Seq, x, vector)};
    } else {
      around = {Builder::loop(LoopKind::Block, x, vector * units),
                Builder::loop(LoopKind::Unit, x, vector)};
    }
  } else {
    for (size_t g = 0; g + 1 < view.spatial.size(); ++g) {
      AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
      around.push_back(Builder::loop(LoopKind::Block, axis, 1));
    }
    x = b.addSpatial("x", {view.spatial.back()});
    vector = std::min<int64_t>(vector, roundUp(view.opt(view.spatial.back()), lanes));
    around.push_back(Builder::loop(LoopKind::Block, x, vector * 16));
    around.push_back(Builder::loop(LoopKind::Seq, x, vector));
  }
  auto overLanes = [&](TreeNode leaf) {
    return Builder::nest(
        {Builder::loop(LoopKind::Unroll, x, lanes), Builder::loop(LoopKind::Lane, x, 1)}, {leaf});
  };
  std::vector<TreeNode> loops;
  for (AxisId r : reduced)
    loops.push_back(Builder::loop(LoopKind::Seq, r, 1));
  TreeNode compute = overLanes(Builder::leaf(LeafKind::Compute, view.first));
  if (!loops.empty())
    compute = Builder::nest(loops, {compute});
  b.schedule.tree = {Builder::nest(around, {overLanes(Builder::leaf(LeafKind::Init, view.first)),
                                            compute, overLanes(b.finishLeaf())})};
  return b.schedule;
}

} // namespace

Candidates reductionCandidates(const View &view) {
  Candidates out;
  bool contiguousRow = false;
  if (!view.reduction.empty())
    for (const ReadInfo &read : readInfos(view))
      contiguousRow = contiguousRow || read.stride(view.reduction.back()) == 1;
  bool cpu = view.target->kind == TargetKind::Cpu;
  if (contiguousRow && view.opt(view.reduction.back()) * 2 >= view.target->lanes) {
    out.push_back(rowReduction(view, 4, false));
    out.push_back(rowReduction(view, 1, false));
    if (!cpu)
      out.push_back(rowReduction(view, 1, true));
    if (view.spatial.empty())
      return out;
  }
  out.push_back(columnReduction(view, 1, 256));
  // GPU: small blocks spread few columns over more multiprocessors.
  out.push_back(cpu ? columnReduction(view, 4, 1) : columnReduction(view, 1, 64));
  return out;
}

} // namespace fusec::tiling

// Schedules of contractions on GPUs: tiles of both operands through shared memory, fma in registers.
#include "Tiling/Builder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// Block tiles through shared memory, one register tile a thread. m: rows, n: columns (lanes), k: everything reduced.
Schedule gpuContraction(const View &view, int64_t rowsPerUnit, int64_t vectors, int64_t depth) {
  int lanes = view.target->lanes, units = 256 / lanes;
  Builder b(view, "mm", units, lanes);
  b.registerEdges();
  std::vector<ReadInfo> reads = readInfos(view);
  const std::vector<int> &lane = view.spatial.back();
  auto inVector = [&](const std::vector<int> &group) {
    return std::any_of(reads.begin(), reads.end(),
                       [&](const ReadInfo &r) { return r.dependsOn(lane) && r.dependsOn(group); });
  };
  auto inBroadcast = [&](const std::vector<int> &group) {
    return std::any_of(reads.begin(), reads.end(),
                       [&](const ReadInfo &r) { return !r.dependsOn(lane) && r.dependsOn(group); });
  };
  std::vector<std::vector<int>> rows, columns;
  std::vector<TreeNode> around;
  for (const std::vector<int> &group : view.spatial) {
    bool vector = group == lane || inVector(group), broadcast = group != lane && inBroadcast(group);
    if (vector && !broadcast)
      columns.push_back(group);
    else if (broadcast && !vector)
      rows.push_back(group);
    else
      around.push_back(Builder::loop(
          LoopKind::Block, b.addSpatial("i" + std::to_string(around.size()), {group}), 1));
  }
  AxisId n = b.addSpatial("n", columns);
  AxisId k = b.addReduction("k", view.reduction);
  int64_t columnsTotal = 1;
  for (const auto &group : columns)
    columnsTotal *= view.opt(group);
  vectors = std::min<int64_t>(vectors, roundUp(columnsTotal, lanes) / lanes);
  // Operands that no longer fit the block's memory are read where they are.
  int64_t sharedLeft = view.target->sharedBytesPerBlock;
  auto stageAll = [&](AxisId rowAxis, int64_t rowTile, int64_t columnTile) {
    std::vector<TreeNode> out;
    for (const ReadInfo &read : reads) {
      bool reduces = std::any_of(view.reduction.begin(), view.reduction.end(),
                                 [&](const auto &g) { return read.dependsOn(g); });
      bool onColumns = read.dependsOn(b.schedule.axes[n].positions);
      bool onRows = rowAxis >= 0 && read.dependsOn(b.schedule.axes[rowAxis].positions);
      int64_t bytes = depth * ((onColumns ? columnTile : rowTile) + 1) *
                      sizeInBytes(view.pattern->tensors[read.tensor].type);
      if (!reduces || onColumns == onRows || roundUp(bytes, 128) > sharedLeft)
        continue;
      sharedLeft -= roundUp(bytes, 128);
      out.push_back(
          Builder::leaf(LeafKind::Stage, b.stage(read, {{k}, {onColumns ? n : rowAxis}}, 1)));
    }
    return out;
  };
  auto overTile = [&](AxisId m, TreeNode leaf) {
    std::vector<TreeNode> loops;
    if (m >= 0)
      loops.push_back(Builder::loop(LoopKind::Unroll, m, 1));
    loops.push_back(Builder::loop(LoopKind::Unroll, n, lanes));
    loops.push_back(Builder::loop(LoopKind::Lane, n, 1));
    return Builder::nest(loops, {leaf});
  };
  auto inUnit = [&](AxisId m, TreeNode child) {
    int64_t step = m >= 0 ? rowsPerUnit : vectors * lanes;
    return Builder::nest({Builder::loop(LoopKind::Unit, m >= 0 ? m : n, step)}, {child});
  };
  AxisId m = -1;
  if (!rows.empty()) {
    m = b.addSpatial("m", rows);
    int64_t rowsTotal = 1;
    for (const auto &group : rows)
      rowsTotal *= view.opt(group);
    rowsPerUnit = std::min(rowsPerUnit, (rowsTotal + units - 1) / units);
    around.push_back(Builder::loop(LoopKind::Block, m, rowsPerUnit * units));
    around.push_back(Builder::loop(LoopKind::Block, n, vectors * lanes));
  } else {
    vectors = 1;
    around.push_back(Builder::loop(LoopKind::Block, n, int64_t{lanes} * units));
  }
  std::vector<TreeNode> step =
      stageAll(m, rowsPerUnit * units, rows.empty() ? int64_t{lanes} * units : vectors * lanes);
  step.push_back(
      inUnit(m, Builder::nest({Builder::loop(LoopKind::Seq, k, 1)},
                              {overTile(m, Builder::leaf(LeafKind::Compute, view.first))})));
  std::vector<TreeNode> body = {inUnit(m, overTile(m, Builder::leaf(LeafKind::Init, view.first))),
                                Builder::nest({Builder::loop(LoopKind::Seq, k, depth)}, step),
                                inUnit(m, overTile(m, b.finishLeaf()))};
  b.schedule.tree = {Builder::nest(around, body)};
  return b.schedule;
}

} // namespace

Candidates gpuContractionCandidates(const View &view) {
  if (view.spatial.empty())
    return reductionCandidates(view);
  return {gpuContraction(view, 8, 2, 16), gpuContraction(view, 4, 1, 32)};
}

} // namespace fusec::tiling

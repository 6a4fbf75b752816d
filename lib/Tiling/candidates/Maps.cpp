// Schedules of a single map: vectors along the last axis, rows and chunks over the blocks.
#include "Expr/OpWeight.h"
#include "Expr/TurnsOfGroup.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ScheduleBuilder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// A read whose addresses jump along the lanes although another axis is contiguous: a transposition.
const ReadInfo *transposedRead(const View &view, size_t &contiguousGroup) {
  for (const ReadInfo &read : view.reads) {
    std::optional<int64_t> last = read.stride(view.spatial.back());
    if (!last || *last == 0 || *last == 1 || read.guarded)
      continue;
    for (size_t g = 0; g + 1 < view.spatial.size(); ++g)
      if (read.stride(view.spatial[g]) == 1 && view.opt(view.spatial[g]) >= 8) {
        contiguousGroup = g;
        return &read;
      }
  }
  return nullptr;
}

/// A vector of each of `rowsAtOnce` rows in turn (1: along one row).
Schedule cpuMap(const View &view, int unroll, int64_t rowsAtOnce) {
  int lanes = view.target->lanes;
  ScheduleBuilder b(view, "map", 1, lanes);
  std::vector<LoopNode> loops;
  if (view.spatial.empty()) {
    b.schedule.tree = {ScheduleBuilder::leaf(LeafKind::Compute, view.first)};
    return b.schedule;
  }
  std::vector<std::vector<int>> groups = view.spatial;
  // A last axis much shorter than a vector would leave most lanes idle: walk all axes as one instead.
  bool fuse = groups.size() > 1 && view.opt(groups.back()) * 2 <= lanes;
  const int64_t elementsPerBlock = view.target->core.elementsPerBlock;
  if (groups.size() == 1 || fuse) {
    AxisId x = b.addSpatial("x", groups);
    int64_t vector = int64_t{lanes} * unroll;
    loops = {ScheduleBuilder::loop(LoopKind::Block, x, roundUp(elementsPerBlock, vector)),
             ScheduleBuilder::loop(LoopKind::Seq, x, vector),
             ScheduleBuilder::loop(LoopKind::Unroll, x, lanes),
             ScheduleBuilder::loop(LoopKind::Lane, x, 1)};
  } else {
    int64_t rowElements = view.opt(groups.back());
    std::vector<LoopNode> inner;
    AxisId rowAxis;
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
      AxisId axis = b.addSpatial("i" + std::to_string(g), {groups[g]});
      bool last = g + 2 == groups.size();
      int64_t rows = 1;
      if (last) {
        rows = std::clamp<int64_t>(elementsPerBlock / rowElements, rowsAtOnce, view.opt(groups[g]));
        rows -= rows % rowsAtOnce;
      }
      loops.push_back(ScheduleBuilder::loop(LoopKind::Block, axis, rows));
      if (rows > rowsAtOnce)
        inner.push_back(ScheduleBuilder::loop(LoopKind::Seq, axis, rowsAtOnce));
      rowAxis = axis;
    }
    AxisId x = b.addSpatial("x", {groups.back()});
    int64_t vector = std::min<int64_t>(int64_t{lanes} * unroll, roundUp(rowElements, lanes));
    loops.insert(loops.end(), inner.begin(), inner.end());
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, vector));
    if (rowsAtOnce > 1)
      loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, rowAxis, 1));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, x, lanes));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, 1));
  }
  b.schedule.tree = {
      ScheduleBuilder::nest(loops, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)})};
  return b.schedule;
}

/// The axis that most of the map's work along its lanes does not depend on, as the channels of an image that a grid
/// samples; none where that is little.
std::optional<size_t> sharingGroup(const View &view) {
  // For less there is nothing to weigh: loads and the store take as long.
  constexpr double kLeastOps = 16;
  // More than maps other than wide choices have, whose code copies would multiply.
  constexpr size_t kMostNodes = 128;
  const Equation &e = view.equation();
  if (e.body.nodes.size() > kMostNodes)
    return std::nullopt;
  const EquationFacts &facts = view.program->facts[static_cast<size_t>(view.first)];
  auto meets = [](const std::vector<int> &group, uint64_t axes) {
    return std::ranges::any_of(group, [&](int position) { return axes >> position & 1; });
  };
  std::optional<size_t> best;
  double most = kLeastOps;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g) {
    double ops = 0;
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (const uint64_t axes = facts.axes[static_cast<size_t>(id)];
          meets(view.spatial.back(), axes) && !meets(view.spatial[g], axes))
        ops += weightOf(e.body[id].op);
    if (ops > most) {
      most = ops;
      best = g;
    }
  }
  return best;
}

/// Vectors of several points of such an axis at once.
Schedule cpuSharingMap(const View &view, size_t sharing, int64_t points) {
  const int lanes = view.target->lanes;
  ScheduleBuilder b(view, "map", 1, lanes);
  const size_t last = view.spatial.size() - 1;
  const int64_t ofRow = points * std::max<int64_t>(1, view.opt(view.spatial[last]));
  std::vector<LoopNode> loops, inner;
  AxisId shared;
  bool hasRows = false; // a block has several of the innermost other axis
  for (size_t g = last; g-- > 0;) {
    const AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
    int64_t size = 1;
    if (g == sharing) {
      size = points;
      shared = axis;
    } else if (!hasRows) {
      size = std::clamp<int64_t>(view.target->core.elementsPerBlock / ofRow, 1,
                                 std::max<int64_t>(1, view.opt(view.spatial[g])));
      if (size > 1)
        inner.push_back(ScheduleBuilder::loop(LoopKind::Seq, axis, 1));
      hasRows = true;
    }
    loops.insert(loops.begin(), ScheduleBuilder::loop(LoopKind::Block, axis, size));
  }
  const AxisId x = b.addSpatial("x", {view.spatial[last]});
  std::ranges::move(inner, std::back_inserter(loops));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, shared, 1));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, 1));
  b.schedule.tree = {
      ScheduleBuilder::nest(loops, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)})};
  return b.schedule;
}

/// Elements that a thread moves side by side at most, of the narrowest that the map reads or writes.
int64_t mostNeighbours(const View &view) {
  int64_t bytes = view.program->bytesOf(view.equation().outputs[0]);
  for (const ReadInfo &read : view.reads)
    bytes = std::min(bytes, read.elementBytes);
  return kWidestAccess / std::max<int64_t>(bytes, 2);
}

Schedule gpuMap(const View &view, int unroll, int64_t neighbours) {
  int lanes = view.target->lanes, units = 256 / lanes;
  ScheduleBuilder b(view, "map", units, lanes);
  if (view.spatial.empty()) {
    b.schedule.tree = {ScheduleBuilder::leaf(LeafKind::Compute, view.first)};
    return b.schedule;
  }
  AxisId x = b.addSpatial("x", view.spatial);
  const int64_t vector = lanes * neighbours, perUnit = vector * unroll;
  std::vector<LoopNode> loops = {ScheduleBuilder::loop(LoopKind::Block, x, perUnit * units),
                                 ScheduleBuilder::loop(LoopKind::Unit, x, perUnit),
                                 ScheduleBuilder::loop(LoopKind::Unroll, x, vector)};
  for (LoopNode &loop : b.lanesAlong(x, neighbours))
    loops.push_back(std::move(loop));
  b.schedule.tree = {
      ScheduleBuilder::nest(loops, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)})};
  return b.schedule;
}

/// The size of parts of equal size, in multiples of `unit`, when there are as few as are no larger than `most` (or a
/// unit).
int64_t evenPart(int64_t extent, int64_t most, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, (extent + most - 1) / most);
  return roundUp((extent + parts - 1) / parts, unit);
}

/// Tiles whose vectors lie along the source's contiguous axis, and `turns` of them along the output's: they are stored
/// as columns. Or (`alongOutput`) the other way round: the source is read as columns, other reads may be vectors.
Schedule cpuTranspose(const View &view, size_t contiguousGroup, bool alongOutput, int64_t turns) {
  const int lanes = view.target->lanes;
  ScheduleBuilder b(view, "transpose", 1, lanes);
  std::vector<LoopNode> loops;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g)
    if (g != contiguousGroup)
      loops.push_back(ScheduleBuilder::loop(
          LoopKind::Block, b.addSpatial("i" + std::to_string(g), {view.spatial[g]}), 1));
  const AxisId p = b.addSpatial("p", {view.spatial[contiguousGroup]}),
               x = b.addSpatial("x", {view.spatial.back()});
  const AxisId lane = alongOutput ? x : p, turn = alongOutput ? p : x;
  int64_t laneExtent = view.opt(view.spatial[contiguousGroup]),
          turnExtent = view.opt(view.spatial.back());
  if (alongOutput)
    std::swap(laneExtent, turnExtent);
  // What a block reads and writes stays in the first cache, whose lines several tiles share.
  constexpr int64_t kTilesAcross = 4;
  const int64_t across = evenPart(laneExtent, kTilesAcross * lanes, lanes),
                along = evenPart(turnExtent, view.target->core.elementsPerBlock / across, turns);
  loops.push_back(ScheduleBuilder::loop(LoopKind::Block, lane, across));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Block, turn, along));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, turn, turns));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, lane, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, turn, 1));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, lane, 1));
  b.schedule.tree = {
      ScheduleBuilder::nest(loops, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)})};
  return b.schedule;
}

/// Reads whose elements do not lie side by side along an axis.
auto columnsOf(const View &view, const std::vector<int> &along) {
  return std::ranges::count_if(view.reads, [&](const ReadInfo &read) {
    const std::optional<int64_t> stride = read.stride(along);
    return stride != 0 && stride != 1;
  });
}

/// Square tiles through shared memory: read along the source's contiguous axis, written along the output's.
Schedule gpuTranspose(const View &view, const ReadInfo &read, size_t contiguousGroup) {
  int lanes = view.target->lanes, units = 256 / lanes;
  ScheduleBuilder b(view, "transpose", units, lanes);
  std::vector<LoopNode> loops;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g)
    if (g != contiguousGroup)
      loops.push_back(ScheduleBuilder::loop(
          LoopKind::Block, b.addSpatial("i" + std::to_string(g), {view.spatial[g]}), 1));
  AxisId p = b.addSpatial("p", {view.spatial[contiguousGroup]});
  AxisId x = b.addSpatial("x", {view.spatial.back()});
  loops.push_back(ScheduleBuilder::loop(LoopKind::Block, p, lanes));
  loops.push_back(ScheduleBuilder::loop(LoopKind::Block, x, lanes));
  const OperandIndex operand = b.stage(read, {{p}, {x}}, 1);
  TreeNode compute = ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unit, p, lanes / units),
                                            ScheduleBuilder::loop(LoopKind::Unroll, p, 1),
                                            ScheduleBuilder::loop(LoopKind::Lane, x, 1)},
                                           {ScheduleBuilder::leaf(LeafKind::Compute, view.first)});
  b.schedule.tree = {ScheduleBuilder::nest(
      loops, {LeafNode{.kind = LeafKind::Stage, .operand = operand}, compute})};
  return b.schedule;
}

} // namespace

Candidates mapCandidates(const View &view) {
  Candidates out;
  if (view.target->vectorLanes) {
    const auto &groups = view.spatial;
    size_t group = 0;
    if (!groups.empty() && transposedRead(view, group)) {
      // Where memory takes longest the first one is chosen: squares before lanes that gather, and of these that with
      // fewer accesses to turn.
      const bool outputFirst = columnsOf(view, groups.back()) < columnsOf(view, groups[group]) + 1;
      for (bool alongOutput : {outputFirst, !outputFirst})
        for (int64_t turns : {int64_t{view.target->lanes}, int64_t{view.target->lanes} / 2})
          if (view.reads.size() > 1 || !alongOutput)
            out.push_back(cpuTranspose(view, group, alongOutput, turns));
    }
    out.push_back(cpuMap(view, 4, 1));
    out.push_back(cpuMap(view, 1, 1));
    if (const std::optional<size_t> sharing = sharingGroup(view))
      for (const int64_t points : {4, 8})
        out.push_back(cpuSharingMap(view, *sharing, points));
    // Rows of a page and more: a core's prefetchers follow each by itself, up to the end of its page. Four lines of one
    // before the next: rows a power of two apart share the sets of an L1, and memory serves runs better than lines.
    constexpr int64_t kLinesOfRun = 4;
    const CpuCore &core = view.target->core;
    const int64_t pageElements = core.pageBytes / 4, runElements = kLinesOfRun * core.lineBytes / 4;
    if (groups.size() > 1 && view.opt(groups.back()) >= pageElements &&
        view.opt(groups[groups.size() - 2]) >= core.rowsToFill)
      out.push_back(cpuMap(view, int(runElements / view.target->lanes), core.rowsToFill));
    return out;
  }
  if (!view.spatial.empty()) {
    size_t group = 0;
    if (const ReadInfo *read = transposedRead(view, group))
      out.push_back(gpuTranspose(view, *read, group));
  }
  // Equals are taken in this order: what the counts do not see are the instructions that wide accesses save.
  for (const int64_t neighbours : {mostNeighbours(view), int64_t{1}})
    for (const int unroll : {1, 4})
      out.push_back(gpuMap(view, unroll, neighbours));
  return out;
}

} // namespace fusec::tiling

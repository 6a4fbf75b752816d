// Schedules of reductions that are not contractions: lanes along the reduced axis (rows) or along the last spatial
// axis (columns, windows).
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/LoopTemplates.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// Lanes walk the innermost reduced axis; partial results are combined over the lanes.
/// CPU: a block takes several rows. GPU: a unit takes a row, or the whole block does when rows are few. `sideBySide`: a
/// lane's elements of a step are neighbours.
Schedule rowReduction(const View &view, int unroll, bool wholeBlock, bool sideBySide = false) {
  const Target &target = *view.target;
  int lanes = target.lanes, units = target.unitsOf(256);
  ScheduleBuilder b(view, wholeBlock ? GeneratorName("block-row") : GeneratorName("row"), units,
                    lanes);
  b.registerEdges();
  std::vector<AxisId> outer;
  for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
    outer.push_back(b.addReduction("r" + std::to_string(g), {view.reduction[g]}));
  AxisId k = b.addReduction("k", {view.reduction.back()});
  int64_t length = view.opt(view.reduction.back());
  int64_t perUnit = std::min<int64_t>(int64_t{lanes} * unroll, roundUp(length, lanes));

  std::vector<LoopNode> loops;
  for (AxisId r : outer)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, r, 1));
  if (wholeBlock && units > 1) {
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, perUnit * units));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unit, k, perUnit));
  } else {
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, perUnit));
  }
  if (sideBySide) {
    for (LoopNode &loop : b.lanesAlong(k, perUnit / lanes))
      loops.push_back(std::move(loop));
  } else {
    loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, lanes));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, k, 1));
  }
  std::vector<TreeNode> row = {
      ScheduleBuilder::leaf(LeafKind::Init, view.first),
      ScheduleBuilder::nest(loops, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)}),
      ScheduleBuilder::leaf(LeafKind::Combine, view.first), b.finishLeaf()};
  if (view.spatial.empty()) {
    b.schedule.tree = row;
    return b.schedule;
  }
  AxisId m = b.addSpatial("m", view.spatial);
  std::vector<LoopNode> around;
  if (!target.blocksHaveUnits()) {
    int64_t rows =
        std::max<int64_t>(1, target.core.elementsPerBlock / std::max<int64_t>(1, length));
    around = {ScheduleBuilder::loop(LoopKind::Block, m, rows),
              ScheduleBuilder::loop(LoopKind::Seq, m, 1)};
  } else if (wholeBlock) {
    around = {ScheduleBuilder::loop(LoopKind::Block, m, 1)};
  } else {
    around = {ScheduleBuilder::loop(LoopKind::Block, m, units),
              ScheduleBuilder::loop(LoopKind::Unit, m, 1)};
  }
  b.schedule.tree = {ScheduleBuilder::nest(around, row)};
  return b.schedule;
}

/// Lanes walk the last spatial axis; each lane reduces on its own. `threads`: of a block, on a GPU.
Schedule columnReduction(const View &view, int unroll, int threads) {
  const Target &target = *view.target;
  int lanes = target.lanes, units = target.unitsOf(threads);
  ScheduleBuilder b(view, "column", units, lanes);
  b.registerEdges();
  std::vector<AxisId> reduced;
  for (size_t g = 0; g < view.reduction.size(); ++g)
    reduced.push_back(b.addReduction("r" + std::to_string(g), {view.reduction[g]}));
  std::vector<LoopNode> around;
  AxisId x;
  int64_t vector = int64_t{lanes} * unroll;
  if (view.spatial.empty()) { // a scalar result: one lane does everything
    std::vector<LoopNode> loops;
    for (AxisId r : reduced)
      loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, r, 1));
    TreeNode compute = ScheduleBuilder::leaf(LeafKind::Compute, view.first);
    b.schedule.tree = {ScheduleBuilder::leaf(LeafKind::Init, view.first),
                       loops.empty() ? compute : ScheduleBuilder::nest(loops, {compute}),
                       b.finishLeaf()};
    return b.schedule;
  }
  bool fuse = !target.vectorLanes ||
              (view.spatial.size() > 1 && view.opt(view.spatial.back()) * 2 <= lanes);
  if (fuse) {
    x = b.addSpatial("x", view.spatial);
    if (target.vectorLanes) {
      around = {ScheduleBuilder::loop(LoopKind::Block, x, vector * 8),
                ScheduleBuilder::loop(LoopKind::Seq, x, vector)};
    } else {
      around = {ScheduleBuilder::loop(LoopKind::Block, x, vector * units),
                ScheduleBuilder::loop(LoopKind::Unit, x, vector)};
    }
  } else {
    for (size_t g = 0; g + 1 < view.spatial.size(); ++g) {
      AxisId axis = b.addSpatial("i" + std::to_string(g), {view.spatial[g]});
      around.push_back(ScheduleBuilder::loop(LoopKind::Block, axis, 1));
    }
    x = b.addSpatial("x", {view.spatial.back()});
    vector = std::min<int64_t>(vector, roundUp(view.opt(view.spatial.back()), lanes));
    around.push_back(ScheduleBuilder::loop(LoopKind::Block, x, vector * 16));
    around.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, vector));
  }
  auto overLanes = [&](TreeNode leaf) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unroll, x, lanes),
                                  ScheduleBuilder::loop(LoopKind::Lane, x, 1)},
                                 {leaf});
  };
  std::vector<LoopNode> loops;
  for (AxisId r : reduced)
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, r, 1));
  TreeNode compute = overLanes(ScheduleBuilder::leaf(LeafKind::Compute, view.first));
  if (!loops.empty())
    compute = ScheduleBuilder::nest(loops, {compute});
  b.schedule.tree = {
      ScheduleBuilder::nest(around, {overLanes(ScheduleBuilder::leaf(LeafKind::Init, view.first)),
                                     compute, overLanes(b.finishLeaf())})};
  return b.schedule;
}

/// Rows too short for the lanes of a unit: the block copies its rows into shared memory as they lie, and each lane
/// reduces one from there. Read directly, every step of every lane would touch another sector.
Schedule shortRows(const View &view, int threads) {
  int lanes = view.target->lanes, units = threads / lanes;
  ScheduleBuilder b(view, "short-rows", units, lanes);
  b.registerEdges();
  AxisId k = b.addReduction("k", {view.reduction.back()});
  AxisId x = b.addSpatial("x", view.spatial);
  std::vector<TreeNode> tile;
  for (const ReadInfo &read : view.reads)
    if (read.stride(view.reduction.back()) == 1 && !read.guarded)
      tile.push_back(LeafNode{.kind = LeafKind::Stage, .operand = b.stage(read, {{x}, {k}}, 1)});
  auto overLanes = [&](TreeNode leaf) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, x, 1)}, {leaf});
  };
  TreeNode sum =
      ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Seq, k, 1)},
                            {overLanes(ScheduleBuilder::leaf(LeafKind::Compute, view.first))});
  tile.push_back(
      ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unit, x, lanes)},
                            {overLanes(ScheduleBuilder::leaf(LeafKind::Init, view.first)), sum,
                             overLanes(b.finishLeaf())}));
  b.schedule.tree = {
      ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Block, x, threads)}, tile)};
  return b.schedule;
}

/// The spatial group along which lies what is reduced elsewhere: means of channels that lie innermost. -1: none.
int contiguousSpatial(const View &view) {
  for (const ReadInfo &read : view.reads)
    for (size_t g = 0; g < view.spatial.size(); ++g)
      if (read.stride(view.spatial[g]) == 1 && read.dependsOn(view.reduction.back()))
        return static_cast<int>(g);
  return -1;
}

/// A block has as many neighbouring columns as a unit has lanes, and its units share the reduced axes: every step reads
/// whole sectors, and few columns keep all units busy. `threads`: of a block.
Schedule tiledColumns(const View &view, int contiguous, int unroll, int threads) {
  const int lanes = view.target->lanes, units = threads / lanes;
  ScheduleBuilder b(view, "columns", units, lanes);
  b.registerEdges();
  std::vector<LoopNode> around, walk;
  for (size_t g = 0; g < view.spatial.size(); ++g)
    if (static_cast<int>(g) != contiguous)
      around.push_back(ScheduleBuilder::loop(
          LoopKind::Block, b.addSpatial("i" + std::to_string(g), {view.spatial[g]}), 1));
  const AxisId x = b.addSpatial("x", {view.spatial[static_cast<size_t>(contiguous)]});
  around.push_back(ScheduleBuilder::loop(LoopKind::Block, x, lanes));
  for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
    walk.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("r" + std::to_string(g), {view.reduction[g]}), 1));
  const AxisId k = b.addReduction("k", {view.reduction.back()});
  for (const LoopNode &loop : sharedByUnits(k, view.opt(view.reduction.back()), units, unroll))
    walk.push_back(loop);
  auto overLanes = [&](TreeNode leaf) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, x, 1)}, {leaf});
  };
  b.schedule.tree = {ScheduleBuilder::nest(
      around, {overLanes(ScheduleBuilder::leaf(LeafKind::Init, view.first)),
               ScheduleBuilder::nest(
                   walk, {overLanes(ScheduleBuilder::leaf(LeafKind::Compute, view.first))}),
               ScheduleBuilder::leaf(LeafKind::Combine, view.first), overLanes(b.finishLeaf())})};
  return b.schedule;
}

/// On a CPU: lanes along what lies side by side, not along the last axis, `turns` of which are stored as columns. A
/// pool over an image [y, x, c] whose result lies as [c, y, x].
Schedule turnedColumns(const View &view, int contiguous, int64_t turns) {
  const int64_t lanes = view.target->lanes;
  ScheduleBuilder b(view, "turned", 1, view.target->lanes);
  b.registerEdges();
  std::vector<LoopNode> around, walk;
  for (size_t g = 0; g + 1 < view.spatial.size(); ++g)
    if (static_cast<int>(g) != contiguous)
      around.push_back(ScheduleBuilder::loop(
          LoopKind::Block, b.addSpatial("i" + std::to_string(g), {view.spatial[g]}), 1));
  const AxisId p = b.addSpatial("p", {view.spatial[static_cast<size_t>(contiguous)]}),
               x = b.addSpatial("x", {view.spatial.back()});
  constexpr int64_t kTilesAcross = 4, kTilesAlong = 16;
  around.push_back(ScheduleBuilder::loop(LoopKind::Block, p, kTilesAcross * lanes));
  around.push_back(ScheduleBuilder::loop(LoopKind::Block, x, kTilesAlong * turns));
  around.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, turns));
  around.push_back(ScheduleBuilder::loop(LoopKind::Seq, p, lanes));
  for (size_t g = 0; g < view.reduction.size(); ++g)
    walk.push_back(ScheduleBuilder::loop(
        LoopKind::Seq, b.addReduction("r" + std::to_string(g), {view.reduction[g]}), 1));
  auto overTile = [&](TreeNode leaf) {
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unroll, x, 1),
                                  ScheduleBuilder::loop(LoopKind::Lane, p, 1)},
                                 {leaf});
  };
  b.schedule.tree = {ScheduleBuilder::nest(
      around, {overTile(ScheduleBuilder::leaf(LeafKind::Init, view.first)),
               ScheduleBuilder::nest(
                   walk, {overTile(ScheduleBuilder::leaf(LeafKind::Compute, view.first))}),
               overTile(b.finishLeaf())})};
  return b.schedule;
}

/// Turns that registers hold, with those that leave no tile of the last axis cut; as many as lanes make a square.
std::vector<int64_t> turnsOf(const View &view) {
  const int64_t lanes = view.target->lanes;
  std::vector<int64_t> turns = {lanes, lanes / 2};
  const DimExpr extent = view.extent(view.spatial.back());
  if (extent.isConst())
    for (int64_t t = lanes - 1; t > lanes / 2; --t)
      if (extent.constValue() % t == 0) {
        turns.push_back(t);
        break;
      }
  return turns;
}

constexpr int kMostVectors = 8; // of a tile of columns

/// Vectors of the last axis a tile, such that all tiles have equally many.
int evenVectors(const View &view) {
  const int64_t lanes = view.target->lanes;
  const int64_t vectors = (view.opt(view.spatial.back()) + lanes - 1) / lanes,
                tiles = (vectors + kMostVectors - 1) / kMostVectors;
  return static_cast<int>((vectors + tiles - 1) / tiles);
}

bool readsPadding(const View &view) {
  return std::ranges::any_of(view.reads,
                             [](const ReadInfo &r) { return r.guarded && !r.constant; });
}

/// Vectors of the last axis that a tile of columns takes on a CPU, the best of equals first: a core fetches a few lines
/// of each row faster than one. Windows have their row's ends at the same lanes of the same tiles, as constants, where
/// no tile has less than another.
std::vector<int> columnVectors(const View &view) {
  const std::vector<int> some = {kMostVectors, 4, 1};
  if (view.spatial.empty() || !view.extent(view.spatial.back()).isConst() || !readsPadding(view))
    return some;
  std::vector<int> vectors = {evenVectors(view)};
  std::ranges::copy_if(some, std::back_inserter(vectors),
                       [&](int v) { return v != vectors.front(); });
  return vectors;
}

int64_t outputsOf(const View &view) {
  int64_t outputs = 1;
  for (const std::vector<int> &group : view.spatial)
    outputs = std::min(outputs * view.opt(group), int64_t{1} << 24);
  return outputs;
}

/// Bytes of a row in shared memory; 0 where rows are long, of unknown length or not the only reduced axis.
int64_t shortRowBytes(const View &view) {
  constexpr int64_t kLongest = 64;
  if (view.target->vectorLanes || view.reduction.size() != 1 || view.spatial.empty() ||
      !view.extent(view.reduction.back()).isConst() || view.opt(view.reduction.back()) > kLongest)
    return 0;
  int64_t bytes = 0;
  for (const ReadInfo &read : view.reads)
    if (read.stride(view.reduction.back()) == 1 && !read.guarded)
      bytes += (view.opt(view.reduction.back()) + 1) * read.elementBytes;
  return bytes;
}

} // namespace

Candidates columnCandidates(const View &view) {
  // Small blocks spread few outputs over more multiprocessors.
  const bool few = outputsOf(view) < 4096;
  return {columnReduction(view, 1, 256),
          few ? columnReduction(view, 1, 64) : columnReduction(view, 2, 256)};
}

Candidates windowCandidates(const View &view) {
  constexpr int64_t kTapsWritten = 8; // Emitter::isShort
  const auto atMost = [&](const std::vector<int> &group, int64_t most) {
    return view.extent(group).isConst() && view.opt(group) <= most;
  };
  Candidates out;
  if (readsPadding(view) && !view.spatial.empty() &&
      atMost(view.spatial.back(), int64_t{kMostVectors} * view.target->lanes) &&
      std::ranges::all_of(view.reduction,
                          [&](const auto &group) { return atMost(group, kTapsWritten); }))
    for (const int vectors : columnVectors(view))
      out.push_back(columnReduction(view, vectors, 1));
  return out;
}

Candidates reductionCandidates(const View &view) {
  Candidates out;
  bool contiguousRow = false;
  if (!view.reduction.empty())
    for (const ReadInfo &read : view.reads)
      contiguousRow = contiguousRow || read.stride(view.reduction.back()) == 1;
  const bool vectorLanes = view.target->vectorLanes;
  if (contiguousRow && view.opt(view.reduction.back()) * 2 >= view.target->lanes) {
    constexpr int kNeighbours = 4; // 16 bytes of f32
    for (const bool wholeBlock : {false, true})
      if (!vectorLanes && view.opt(view.reduction.back()) >= kNeighbours * view.target->lanes)
        out.push_back(rowReduction(view, kNeighbours, wholeBlock, true));
    out.push_back(rowReduction(view, 4, false));
    out.push_back(rowReduction(view, 1, false));
    if (!vectorLanes)
      out.push_back(rowReduction(view, 1, true));
    if (view.spatial.empty())
      return out;
  }
  constexpr int64_t kSharedBytes = 32 * 1024;
  const bool few = outputsOf(view) < 4096;
  if (int64_t bytes = shortRowBytes(view); bytes > 0)
    for (int threads : {256, 64})
      if (threads * bytes <= kSharedBytes && (threads == 256 || few))
        out.push_back(shortRows(view, threads));
  if (const int g = vectorLanes || view.reduction.empty() ? -1 : contiguousSpatial(view); g >= 0)
    for (int threads : {256, 1024})
      for (int unroll : {1, 4})
        if (view.opt(view.reduction.back()) * view.target->lanes >= threads) // all units have some
          out.push_back(tiledColumns(view, g, unroll, threads));
  if (const int g = vectorLanes && !view.reduction.empty() ? contiguousSpatial(view) : -1;
      g >= 0 && g + 1 < static_cast<int>(view.spatial.size()) &&
      view.opt(view.spatial[static_cast<size_t>(g)]) * 2 > view.target->lanes)
    for (const int64_t turns : turnsOf(view))
      out.push_back(turnedColumns(view, g, turns));
  if (vectorLanes) {
    for (const int vectors : columnVectors(view))
      out.push_back(columnReduction(view, vectors, 1));
    return out;
  }
  for (Schedule &schedule : columnCandidates(view))
    out.push_back(std::move(schedule));
  return out;
}

} // namespace fusec::tiling

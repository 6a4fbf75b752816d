// Schedules of thin contractions on GPUs: one to eight rows times a large matrix. Of the matrix nothing is used twice
// but by the rows of one thread, so that it goes from memory straight into registers, 16 bytes a read; what counts is
// that all of the device reads. A row times a matrix of f32 with columns side by side, in blocks of 512 threads:
//
//   block n:128 {
//     lane n:4 { unroll n:1 { init e0 } }
//     seq k:64 { unit k:4 { unroll k:1 { lane n:4 { unroll n:1 { compute e0 } } } } }
//     lane n:4 { unroll n:1 { combine e0 } }
//     lane n:4 { unroll n:1 { store e0 } } }
//
// and with its terms side by side, a unit for each column:
//
//   block n:8 { unit n:1 {
//     init e0
//     seq k:512 { unroll k:128 { lane k:4 { unroll k:1 { compute e0 } } } }
//     combine e0
//     store e0 } }
//
// Rows are an Unroll loop around the lanes.
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/candidates/ThinTiles.h"

namespace fusec::tiling {

namespace {

class ThinContractions {
public:
  explicit ThinContractions(const View &view) : view(view), roles(view) {}

  Candidates run() {
    Candidates found;
    for (const ThinTile &tile : thinTiles(view))
      found.push_back(thin(tile));
    for (const ThinTile &tile : thinRowTiles(view))
      found.push_back(thinRows(tile));
    return found;
  }

private:
  Schedule thin(const ThinTile &tile) {
    ScheduleBuilder b(view, "thin", tile.units, view.target->lanes);
    std::vector<LoopNode> around = begin(b);
    around.push_back(
        ScheduleBuilder::loop(LoopKind::Block, n, tile.neighbours * view.target->lanes));
    std::vector<LoopNode> walk = outerSums(b);
    for (const LoopNode &loop :
         sharedByUnits(b.addReduction("k", {view.reduction.back()}),
                       view.opt(view.reduction.back()), tile.units, static_cast<int>(tile.terms)))
      walk.push_back(loop);
    auto overTile = [&](const LeafNode &leaf) {
      std::vector<LoopNode> loops = overRows();
      loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, n, tile.neighbours));
      if (tile.neighbours > 1)
        loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, n, 1));
      return ScheduleBuilder::nest(loops, {TreeNode(leaf)});
    };
    auto leaf = [&](LeafKind kind) { return ScheduleBuilder::leaf(kind, view.first); };
    b.schedule.tree = {ScheduleBuilder::nest(
        around, {overTile(leaf(LeafKind::Init)),
                 ScheduleBuilder::nest(walk, {overTile(leaf(LeafKind::Compute))}),
                 overTile(leaf(LeafKind::Combine)), overTile(b.finishLeaf())})};
    return std::move(b.schedule);
  }

  Schedule thinRows(const ThinTile &tile) {
    ScheduleBuilder b(view, "thin-rows", tile.units, view.target->lanes);
    std::vector<LoopNode> around = begin(b);
    const int64_t step = tile.neighbours * view.target->lanes;
    std::vector<LoopNode> walk = outerSums(b);
    const AxisId k = b.addReduction("k", {view.reduction.back()});
    if (tile.wholeBlock) {
      around.push_back(ScheduleBuilder::loop(LoopKind::Block, n, tile.columns));
      walk.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, tile.units * tile.terms * step));
      walk.push_back(ScheduleBuilder::loop(LoopKind::Unit, k, tile.terms * step));
    } else {
      around.push_back(ScheduleBuilder::loop(LoopKind::Block, n, tile.units * tile.columns));
      around.push_back(ScheduleBuilder::loop(LoopKind::Unit, n, tile.columns));
      walk.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, tile.terms * step));
    }
    if (tile.terms > 1)
      walk.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, step));
    std::vector<LoopNode> tileLoops;
    if (tile.columns > 1)
      tileLoops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, n, 1));
    for (const LoopNode &loop : overRows())
      tileLoops.push_back(loop);
    walk.insert(walk.end(), tileLoops.begin(), tileLoops.end());
    walk.push_back(ScheduleBuilder::loop(LoopKind::Lane, k, tile.neighbours));
    if (tile.neighbours > 1)
      walk.push_back(ScheduleBuilder::loop(LoopKind::Unroll, k, 1));
    auto overTile = [&](const LeafNode &leaf) {
      return tileLoops.empty() ? TreeNode(leaf)
                               : ScheduleBuilder::nest(tileLoops, {TreeNode(leaf)});
    };
    auto leaf = [&](LeafKind kind) { return ScheduleBuilder::leaf(kind, view.first); };
    b.schedule.tree = {ScheduleBuilder::nest(
        around, {overTile(leaf(LeafKind::Init)),
                 ScheduleBuilder::nest(walk, {TreeNode(leaf(LeafKind::Compute))}),
                 overTile(leaf(LeafKind::Combine)), overTile(b.finishLeaf())})};
    return std::move(b.schedule);
  }

  /// Adds the spatial axes and gives the loops over blocks around columns.
  std::vector<LoopNode> begin(ScheduleBuilder &b) {
    b.registerEdges();
    std::vector<LoopNode> around = roles.blocksOutside(b);
    n = b.addSpatial("n", roles.columns);
    m = roles.rows.empty() ? AxisId() : b.addSpatial("m", roles.rows);
    return around;
  }

  /// Adds the reduced axes but the last, and gives the loops over them.
  std::vector<LoopNode> outerSums(ScheduleBuilder &b) const {
    std::vector<LoopNode> loops;
    for (size_t g = 0; g + 1 < view.reduction.size(); ++g)
      loops.push_back(ScheduleBuilder::loop(
          LoopKind::Seq, b.addReduction("r" + std::to_string(g), {view.reduction[g]}), 1));
    return loops;
  }

  std::vector<LoopNode> overRows() const {
    if (m < 0)
      return {};
    return {ScheduleBuilder::loop(LoopKind::Unroll, m, 1)};
  }

  const View &view;
  const ContractionRoles roles;
  AxisId n, m; // of the schedule that is being made
};

} // namespace

Candidates thinContractionCandidates(const View &view) { return ThinContractions(view).run(); }

} // namespace fusec::tiling

// Schedules of contractions on GPUs: tiles of both operands through shared memory, fma in registers.
#include "Expr/TurnsOfGroup.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

namespace {

/// What of an operand is brought into shared memory.
enum class Staging : uint8_t {
  Elements, // one for every point of the tile: what lies under several windows is copied once for each of them
  Boxes, // for reads through sliding windows, all that the tile's windows cover, once
};

struct BlockTile {
  int64_t rowsPerUnit, vectors; // register tile of a thread
  int64_t neighbours;           // columns of a vector that a lane has side by side
  int64_t depth;                // steps of k between two barriers
};

/// Axes that move an index of the read together with another axis, as a convolution's window does; bit a for axis a.
uint64_t slidingAxes(const View &view, const ReadInfo &read) {
  const Equation &e = view.equation();
  uint64_t sliding = 0, moving = 0;
  for (size_t p = 0; p < e.axes.size(); ++p)
    moving |= uint64_t{!e.axes[p].extent.isConst(1)} << p;
  for (NodeId index : indexOperands(e.body[read.node]))
    if (uint64_t axes = axisDependence(e.body, index) & moving; std::popcount(axes) > 1)
      sliding |= axes;
  return sliding;
}

/// Block tiles through shared memory, one register tile a thread. m: rows, n: columns (lanes), k: everything reduced.
class GpuContraction {
public:
  GpuContraction(const View &view, BlockTile tile, Staging staging)
      : view(view), tile(tile), staging(staging),
        b(view, staging == Staging::Boxes ? GeneratorName("mm-boxes") : GeneratorName("mm"),
          256 / view.target->lanes, view.target->lanes),
        sharedLeft(view.target->sharedBytesPerBlock) {}

  /// nullopt where no read slides a window of constant size over memory that a block has room for.
  std::optional<Schedule> build() {
    const int64_t units = b.schedule.units, lanes = b.schedule.lanes;
    b.registerEdges();
    around = roles.blocksOutside(b);
    n = b.addSpatial("n", columns);
    k = b.addReduction("k", view.reduction);
    std::vector<int64_t> steps = {tile.depth, 1};
    if (staging == Staging::Boxes && !walkWindows(steps))
      return std::nullopt;
    while (tile.neighbours > 1 && lanes * tile.neighbours >= 2 * pointsOf(view, columns))
      tile.neighbours /= 2;
    const int64_t vector = lanes * tile.neighbours;
    tile.vectors =
        rows.empty() ? 1 : std::min(tile.vectors, (pointsOf(view, columns) + vector - 1) / vector);
    rowTile = 1;
    columnTile = rows.empty() ? vector * units : tile.vectors * vector;
    if (!rows.empty()) {
      m = b.addSpatial("m", rows);
      tile.rowsPerUnit = std::min(tile.rowsPerUnit, (pointsOf(view, rows) + units - 1) / units);
      if (staging == Staging::Boxes)
        alignRows();
      rowTile = tile.rowsPerUnit * units;
      around.push_back(ScheduleBuilder::loop(LoopKind::Block, m, rowTile));
    }
    around.push_back(ScheduleBuilder::loop(LoopKind::Block, n, columnTile));
    std::optional<std::vector<TreeNode>> step = stages(steps[0]);
    if (!step)
      return std::nullopt;
    std::vector<LoopNode> walk;
    for (size_t i = 1; i < steps.size(); ++i)
      walk.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, steps[i]));
    step->push_back(inUnit(ScheduleBuilder::nest(
        walk, {overTile(ScheduleBuilder::leaf(LeafKind::Compute, view.first))})));
    std::vector<TreeNode> body = {
        inUnit(overTile(ScheduleBuilder::leaf(LeafKind::Init, view.first))),
        ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Seq, k, steps[0])},
                              std::move(*step)),
        inUnit(overTile(b.finishLeaf()))};
    b.schedule.tree = {ScheduleBuilder::nest(around, body)};
    return b.schedule;
  }

private:
  /// Replaces the steps of the loops over k, outermost first, by ones that take whole windows, so that a box holds
  /// nothing that its tile does not use. False if there is no window, or one of no constant size.
  bool walkWindows(std::vector<int64_t> &steps) const {
    const Equation &e = view.equation();
    uint64_t sliding = 0;
    for (const ReadInfo &read : view.reads)
      sliding |= slidingAxes(view, read);
    const std::vector<int> &positions = b.positionsOf(k);
    auto first = std::ranges::find_if(positions, [&](int p) { return sliding >> p & 1; });
    if (first == positions.end())
      return false;
    steps = {1};
    for (auto p = positions.end(); p-- != first;) {
      if (!e.axes[*p].extent.isConst())
        return false;
      if (int64_t extent = e.axes[*p].extent.constValue(); extent > 1)
        steps.insert(steps.begin(), steps[0] * extent);
    }
    int64_t windows = (tile.depth + steps[0] - 1) / steps[0];
    if (first != positions.begin() && windows > 1)
      steps.insert(steps.begin(), steps[0] * windows);
    return true;
  }

  /// Whole lines of the image in a tile, or whole tiles in a line: others need a box as wide as the image.
  void alignRows() {
    const DimExpr &line = view.equation().axes[rows.back().back()].extent;
    if (!line.isConst())
      return;
    for (int64_t count = tile.rowsPerUnit; count * 2 > tile.rowsPerUnit; --count) {
      int64_t elements = count * b.schedule.units;
      if (line.constValue() % elements == 0 || elements % line.constValue() == 0) {
        tile.rowsPerUnit = count;
        return;
      }
    }
  }

  /// Stage statements of a step of k. Operands that no longer fit the block's memory are read where they are.
  std::optional<std::vector<TreeNode>> stages(int64_t depth) {
    std::vector<TreeNode> out;
    for (const ReadInfo &read : view.reads) {
      bool reduces =
          std::ranges::any_of(view.reduction, [&](const auto &g) { return read.dependsOn(g); });
      bool onColumns = read.dependsOn(b.positionsOf(n));
      bool onRows = m >= 0 && read.dependsOn(b.positionsOf(m));
      const bool madeHere = view.tensor(read.tensor).kind == TensorKind::Temp;
      if (!reduces || onColumns == onRows || madeHere)
        continue;
      std::vector<LayoutDigit> digits = {{k}, {onColumns ? n : m}};
      bool box = staging == Staging::Boxes && slidingAxes(view, read) != 0;
      if (box) {
        if (read.guarded && !paddingBounds(view.equation(), read.node, view.program->expr))
          return std::nullopt;
        digits.clear();
        for (size_t d = 0; d < view.tensor(read.tensor).shape.size(); ++d)
          digits.push_back({{}, static_cast<int>(d)});
      }
      // Rows begin at other banks than their neighbours, and at multiples of what a thread reads at once.
      const int64_t pad = std::max<int64_t>(1, kWidestAccess / read.elementBytes);
      const OperandIndex operand = b.stage(read, digits, box ? 0 : pad);
      int64_t bytes = roundUp(stagedBytes(operand, depth), 128);
      if (bytes == 0 || bytes > sharedLeft) {
        if (box)
          return std::nullopt;
        b.schedule.operands.pop_back();
        continue;
      }
      sharedLeft -= bytes;
      out.push_back(LeafNode{.kind = LeafKind::Stage, .operand = operand});
    }
    return out;
  }

  int64_t stagedBytes(OperandIndex index, int64_t depth) const {
    const Operand &operand = b.schedule.operands[index];
    std::vector<int64_t> extents =
        stagedExtents(b.schedule, view.equation(), operand, [&](AxisId a) -> int64_t {
          return a == k ? depth : a == n ? columnTile : a == m ? rowTile : 1;
        });
    extents.back() += operand.padElements;
    int64_t bytes = view.reads[operand.read].elementBytes;
    for (int64_t extent : extents)
      bytes *= extent;
    return bytes;
  }

  TreeNode inUnit(TreeNode child) const {
    return m >= 0
               ? ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unit, m, tile.rowsPerUnit)},
                                       {child})
               : ScheduleBuilder::nest(
                     {ScheduleBuilder::loop(LoopKind::Unit, n, b.schedule.lanes * tile.neighbours)},
                     {child});
  }

  TreeNode overTile(TreeNode leaf) const {
    return b.overTile(m, n, std::move(leaf), tile.neighbours);
  }

  const View &view;
  BlockTile tile;
  Staging staging;
  ScheduleBuilder b;
  int64_t sharedLeft;
  const ContractionRoles roles{view};
  const AxisGroups &rows = roles.rows, &columns = roles.columns;
  std::vector<LoopNode> around;
  AxisId n, k, m;
  int64_t rowTile = 1, columnTile = 1; // elements of m and n a block
};

} // namespace

/// A matrix, whose rows lie along the sum, times a vector: tiles of one row leave most of a device idle, and threads
/// along the sum read the matrix as it lies.
static bool sumsRowsOfMatrix(const View &view) {
  return view.spatial.size() == 1 && std::ranges::any_of(view.reads, [&](const ReadInfo &read) {
           return read.stride(view.reduction.back()) == 1 && read.dependsOn(view.spatial[0]);
         });
}

Candidates gpuContractionCandidates(const View &view) {
  if (view.spatial.empty())
    return reductionCandidates(view);
  Candidates candidates;
  if (sumsRowsOfMatrix(view))
    candidates = reductionCandidates(view);
  for (Staging staging : {Staging::Elements, Staging::Boxes})
    for (BlockTile tile : {BlockTile{8, 2, 1, 16}, BlockTile{4, 1, 1, 32}, BlockTile{16, 1, 4, 16},
                           BlockTile{8, 1, 4, 32}, BlockTile{4, 1, 4, 32}})
      if (std::optional<Schedule> schedule = GpuContraction(view, tile, staging).build())
        candidates.push_back(std::move(*schedule));
  for (Schedule &schedule : thinContractionCandidates(view))
    candidates.push_back(std::move(schedule));
  // Nothing of a depthwise window is used by another lane but what the caches have: a tile would only be in the way.
  if (ContractionRoles(view).rows.empty())
    for (Schedule &schedule : columnCandidates(view))
      candidates.push_back(std::move(schedule));
  return candidates;
}

} // namespace fusec::tiling

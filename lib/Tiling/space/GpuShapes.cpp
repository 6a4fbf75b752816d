#include "Tiling/space/ContractionShapes.h"
#include "Tiling/space/ReadBox.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

struct BlockTile {
  int64_t rowsPerUnit, vectors; // register tile of a thread
  int64_t neighbours;           // columns of a vector that a lane has side by side
  int64_t depth;                // steps of k between two barriers
};

/// Block tiles through shared memory. m: rows, n: columns (lanes), k: everything reduced.
class GpuBlock {
public:
  GpuBlock(const View &view, const ContractionRoles &roles, BlockTile tile, bool boxes)
      : view(view), roles(roles), tile(tile), boxes(boxes) {}

  /// nullopt where boxes are asked for and no read slides a window of constant size.
  std::optional<TreeShape> shape() {
    const int64_t units = view.target->unitsOf(TreeBuilder::kThreads), lanes = view.target->lanes;
    std::vector<int64_t> steps = {tile.depth, 1};
    if (boxes && !walkWindows(steps))
      return std::nullopt;
    const int64_t columns = pointsOf(view, roles.columns), rows = pointsOf(view, roles.rows);
    while (tile.neighbours > 1 && lanes * tile.neighbours >= 2 * columns)
      tile.neighbours /= 2;
    const int64_t vector = lanes * tile.neighbours;
    TreeShape out;
    out.depth = steps[0];
    out.steps.assign(steps.begin() + 1, steps.end());
    out.neighbours = tile.neighbours;
    out.wideRows = true;
    out.boxes = boxes;
    out.room = view.target->sharedBytesPerBlock;
    if (roles.rows.empty()) {
      out.columns = vector * units;
      return out;
    }
    out.tile.vectors = std::min(tile.vectors, (columns + vector - 1) / vector);
    out.columns = out.tile.vectors * vector;
    out.tile.rows = std::min(tile.rowsPerUnit, (rows + units - 1) / units);
    if (boxes)
      out.tile.rows = alignedRows(out.tile.rows);
    out.rows = out.tile.rows * units;
    return out;
  }

private:
  /// Replaces the steps of the loops over k, outermost first, by ones that take whole windows, so that a box holds
  /// nothing that its tile does not use. False if there is no window, or one of no constant size.
  bool walkWindows(std::vector<int64_t> &steps) const {
    const Equation &e = view.equation();
    uint64_t sliding = 0;
    for (const ReadInfo &read : view.reads)
      sliding |= slidingAxes(e, read.node);
    const std::vector<int> positions = flat(view.reduction);
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
  int64_t alignedRows(int64_t most) const {
    const DimExpr &line = view.equation().axes[roles.rows.back().back()].extent;
    if (!line.isConst())
      return most;
    for (int64_t count = most; count * 2 > most; --count) {
      const int64_t elements = count * view.target->unitsOf(TreeBuilder::kThreads);
      if (line.constValue() % elements == 0 || elements % line.constValue() == 0)
        return count;
    }
    return most;
  }

  const View &view;
  const ContractionRoles &roles;
  BlockTile tile;
  const bool boxes;
};

} // namespace

std::vector<TreeShape> gpuShapes(const View &view, const ContractionRoles &roles) {
  std::vector<TreeShape> shapes;
  for (const bool boxes : {false, true})
    for (BlockTile tile : {BlockTile{8, 2, 1, 16}, BlockTile{4, 1, 1, 32}, BlockTile{16, 1, 4, 16},
                           BlockTile{8, 1, 4, 32}, BlockTile{4, 1, 4, 32}})
      if (std::optional<TreeShape> shape = GpuBlock(view, roles, tile, boxes).shape())
        shapes.push_back(std::move(*shape));
  return shapes;
}

std::vector<TreeShape> thinShapes(const View &view, const ContractionRoles &roles) {
  std::vector<TreeShape> shapes;
  const int64_t rows = pointsOf(view, roles.rows);
  for (const ThinTile &tile : thinTiles(view))
    shapes.push_back({.rows = rows,
                      .tile = {rows, 1},
                      .columns = tile.neighbours * view.target->lanes,
                      .thin = tile});
  for (const ThinTile &tile : thinRowTiles(view))
    shapes.push_back({.rows = rows,
                      .tile = {rows, 1},
                      .columns = tile.wholeBlock ? tile.columns : tile.units * tile.columns,
                      .thin = tile,
                      .thinAlongSum = true});
  return shapes;
}

} // namespace fusec::tiling

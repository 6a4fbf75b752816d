#include "Tiling/space/ContractionShapes.h"
#include "Tiling/space/ReadBox.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// How much of a contraction a block on a CPU has.
class CpuBlock {
public:
  CpuBlock(const View &view, const Roles &roles, const TreeSpace &tree, RegisterTile tile,
           bool panels)
      : view(view), roles(roles), tree(tree), tile(tile), panels(panels) {}

  TreeShape shape() {
    choose();
    return {.rows = rows,
            .tile = tile,
            .outside = outside,
            .panels = panels,
            .columns = columns,
            .room = view.target->sharedBytesPerBlock};
  }

private:
  int64_t reductionSize() const {
    int64_t size = 1;
    for (const auto &group : view.reduction)
      size *= view.opt(group);
    return size;
  }

  void choose() {
    const int64_t tileColumns = tile.vectors * view.target->lanes;
    int64_t rowBytes = 0;
    for (const ReadInfo &read : view.reads)
      rowBytes = std::max(rowBytes, reductionSize() * read.elementBytes);
    constexpr int64_t kOperandBytes = 256 << 10;
    const int64_t allColumns = view.opt(view.spatial[roles.lane]);
    columns = tileColumns;
    while (!panels && columns * 2 * rowBytes <= kOperandBytes / 2 &&
           columns * 2 <= roundUp(allColumns, tileColumns))
      columns *= 2;
    if (roles.row < 0)
      return;
    // A window that all columns see is copied with its padding once for them.
    const int64_t everyColumn = roundUp(allColumns, tileColumns),
                  box = boxes(tileColumns, 1).elements;
    const bool arePacked = std::ranges::all_of(view.reads, [&](const ReadInfo &read) {
      return read.constant || !read.dependsOn(view.spatial[roles.lane]);
    });
    if (arePacked && box > 0 && boxes(everyColumn, 1).elements == box)
      columns = everyColumn;
    while (columns >= 2 * std::max(tileColumns, kPanel) && columnsShareNothing())
      columns /= 2;
    const int64_t allRows = view.opt(view.spatial[roles.row]);
    const int64_t fit =
        std::max<int64_t>(1, kOperandBytes * 2 / std::max<int64_t>(1, rowBytes) / tile.rows) *
        tile.rows;
    const int64_t parts = (allRows + fit - 1) / fit; // of equal size
    rows = roundUp((allRows + parts - 1) / parts, tile.rows);
    // Enough blocks that several cores have work, as long as a block keeps a few register tiles.
    int64_t others = 1;
    for (int g : roles.blocks)
      others *= view.opt(view.spatial[g]);
    auto blocks = [&] {
      return others * ((allRows + rows - 1) / rows) * ((allColumns + columns - 1) / columns);
    };
    while (blocks() < 16 && columns > tileColumns)
      columns = std::max(tileColumns, roundUp(columns / 2, tileColumns));
    while (blocks() < 8 && rows > 2 * tile.rows)
      rows = roundUp(rows / 2, tile.rows);
    enlarge(blocks());
    shareHalos(blocks());
  }

  /// Handing out a block costs as much as some thousand fmas: small blocks take several steps of the innermost outer
  /// axis, as long as all cores keep work.
  void enlarge(int64_t blocks) {
    constexpr int64_t kFmasPerBlock = 1 << 16;
    if (roles.blocks.empty())
      return;
    const int64_t extent = view.opt(view.spatial[roles.blocks.back()]);
    const int64_t work = rows * columns * reductionSize();
    while (outside * 2 <= extent && work * outside < kFmasPerBlock && blocks / outside > 32)
      outside *= 2;
  }

  /// Columns that share nothing of a box have boxes of their own, which a cache nearby holds.
  bool columnsShareNothing() const {
    const int64_t all = boxes(columns, 1).elements;
    return all > 0 && 2 * boxes(columns / 2, 1).elements <= all;
  }

  /// Windows of neighbouring blocks overlap, and each block copies what lies under its own: while copies are many
  /// beside products, and fewer in larger blocks, these take several steps of the innermost outer axis. Depthwise 7x7
  /// of 96 channels took 1.6 times as long with seven rows copied for each row of results. A vector that is copied
  /// takes as long as ten that are multiplied.
  void shareHalos(int64_t blocks) {
    constexpr int64_t kProductsOfCopy = 200;
    if (roles.blocks.empty())
      return;
    const int64_t extent = view.opt(view.spatial[roles.blocks.back()]);
    const int64_t products = rows * columns * reductionSize();
    int64_t step = outside;
    while (step * 2 <= extent && blocks / step > 32) {
      const Boxes now = boxes(columns, step), larger = boxes(columns, step * 2);
      if (now.elements * kProductsOfCopy < products * step ||
          larger.elements * 5 > now.elements * 9 ||
          larger.bytes > view.target->sharedBytesPerBlock / 2)
        break;
      step *= 2;
    }
    if (step > outside) {
      const int64_t parts = (extent + step - 1) / step; // of equal size
      outside = (extent + parts - 1) / parts;
    }
  }

  struct Boxes {
    int64_t elements = 0, bytes = 0;
  };
  /// What a block of so much copies of all padded operands, as far as it is known.
  Boxes boxes(int64_t columnsOfBlock, int64_t points) const {
    Boxes all;
    for (size_t r = 0; r < view.reads.size(); ++r)
      if (const auto box = isPadded(tree, view.first, r)
                               ? boxOf(tree, view.first, r,
                                       {.rows = rows, .outside = points, .columns = columnsOfBlock})
                               : std::nullopt) {
        all.elements += box->elements();
        all.bytes += box->elements() * box->elementBytes;
      }
    return all;
  }

  const View &view;
  const Roles &roles;
  const TreeSpace &tree;
  const RegisterTile tile;
  const bool panels;
  int64_t rows = 1, columns = 1, outside = 1;
};

} // namespace

TreeShape cpuShape(const View &view, const Roles &roles, const TreeSpace &tree, RegisterTile tile,
                   bool panels) {
  return CpuBlock(view, roles, tree, tile, panels).shape();
}

std::vector<TreeShape> tallerShapes(const View &view, const Roles &roles, TreeShape shape) {
  constexpr size_t kMost = 2;
  constexpr int64_t kFewestBlocks = 8; // several cores have work
  if (roles.row < 0)
    return {};
  const MemoryLevel &own = view.target->memory[1], &shared = view.target->memory[2];
  // For all columns and sums, and for one row, at one point of the axes outside.
  double again = 0, ofRow = 0;
  for (const ReadInfo &read : view.reads) {
    double bytes = double(read.elementBytes);
    if (read.dependsOn(view.spatial[roles.lane]))
      bytes *= double(view.opt(view.spatial[roles.lane]));
    for (const std::vector<int> &group : view.reduction)
      bytes *= read.dependsOn(group) ? double(view.opt(group)) : 1;
    (read.dependsOn(view.spatial[roles.row]) ? ofRow : again) += bytes;
  }
  if (again <= double(own.capacityBytes))
    return {};
  shape.columns = shape.tile.vectors * view.target->lanes;
  shape.outside = 1;
  const int64_t allRows = view.opt(view.spatial[roles.row]),
                allColumns = view.opt(view.spatial[roles.lane]);
  int64_t others = (allColumns + shape.columns - 1) / shape.columns;
  for (int g : roles.blocks)
    others *= view.opt(view.spatial[g]);
  std::vector<TreeShape> shapes;
  const int64_t before = shape.rows;
  for (int64_t parts = 1; shapes.size() < kMost; parts *= 2) {
    shape.rows = roundUp((allRows + parts - 1) / parts, shape.tile.rows);
    if (shape.rows <= before)
      break;
    const int64_t blocks = others * ((allRows + shape.rows - 1) / shape.rows);
    if (blocks >= kFewestBlocks && double(shape.rows) * ofRow <= double(shared.capacityBytes) / 2)
      shapes.push_back(shape);
  }
  return shapes;
}

} // namespace fusec::tiling

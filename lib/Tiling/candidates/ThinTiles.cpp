#include "Tiling/candidates/ThinTiles.h"

#include "Expr/TurnsOfGroup.h"
#include "Gir/Liveness.h"
#include "Tiling/candidates/ContractionRoles.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kLeastMatrix = 1 << 11; // elements: smaller ones take a launch and little else
constexpr int64_t kMostTerms = 4;         // that a thread reads at once
constexpr int64_t kMostSums = 32;         // that it then has

class ThinTiles {
public:
  explicit ThinTiles(const View &view) : view(view), target(*view.target), roles(view) {}

  std::vector<ThinTile> ofColumns() {
    if (!isThin())
      return {};
    if (const ReadInfo *matrix = matrixAlong(roles.columns.back()))
      addColumns(*matrix);
    return std::move(found);
  }

  std::vector<ThinTile> ofTerms() {
    if (!isThin())
      return {};
    if (const ReadInfo *matrix = matrixAlong(view.reduction.back()))
      addTerms(*matrix);
    return std::move(found);
  }

private:
  /// Few rows, or one that is all that the sum has beside the matrix.
  bool isThin() const {
    if (view.reduction.empty() || columns() * pointsOf(view, view.reduction) < kLeastMatrix)
      return false;
    const bool known = std::ranges::all_of(
        roles.rows, [&](const std::vector<int> &group) { return view.extent(group).isConst(); });
    return known && pointsOf(view, roles.rows) <= kMostRows &&
           std::ranges::any_of(view.reads, [&](const ReadInfo &r) {
             return needs(r, view.reduction) && !needs(r, roles.columns);
           });
  }

  static bool needs(const ReadInfo &read, const AxisGroups &groups) {
    return std::ranges::any_of(groups, [&](const auto &group) { return read.dependsOn(group); });
  }

  /// The read of a matrix that has its elements side by side along the group; null where there is none.
  const ReadInfo *matrixAlong(const std::vector<int> &group) const {
    const auto read = std::ranges::find_if(view.reads, [&](const ReadInfo &r) {
      return r.stride(group) == 1 && needs(r, view.reduction) && needs(r, roles.columns) &&
             !needs(r, roles.rows);
    });
    return read == view.reads.end() ? nullptr : &*read;
  }

  int64_t rows() const { return pointsOf(view, roles.rows); }
  int64_t columns() const { return pointsOf(view, roles.columns); }
  int64_t terms() const { return view.opt(view.reduction.back()); }

  /// Elements along the group, side by side, that one access reads wherever it begins: all lines of the matrix begin at
  /// multiples of them.
  int64_t widest(const ReadInfo &matrix, const std::vector<int> &group) const {
    std::vector<DimExpr> lines = {matrix.access->constant};
    for (const FlatAccess::Rest &rest : matrix.access->rests)
      lines.push_back(rest.stride);
    for (size_t p = 0; p < matrix.access->stride.size(); ++p)
      if (std::ranges::count(group, static_cast<int>(p)) == 0)
        lines.push_back(matrix.access->stride[p]);
    int64_t elements = std::max<int64_t>(1, kWidestAccess / matrix.elementBytes);
    while (elements > 1 && !std::ranges::all_of(lines, [&](const DimExpr &line) {
             return line.divisibleBy(elements, view.program->expr.symbols);
           }))
      elements /= 2;
    return elements;
  }

  /// Registers of a thread have room for so many sums, beside operands of its terms and addresses.
  bool fits(const ThinTile &tile, int64_t sums) const {
    constexpr int64_t kBeside = 16;
    const int64_t threads = int64_t{tile.units} * target.lanes,
                  have =
                      std::min<int64_t>(target.vectorRegisters, target.registersPerCore / threads);
    return registersFor(sums, view.equation().accumulateType) + tile.terms * tile.operands +
               kBeside <=
           have;
  }

  /// Sets the terms that a thread reads at once: no more than its share, in registers that it has, and such that tiles
  /// of `step` elements a term end with the sum, where that takes few away. `sums`: a thread's partial results. False
  /// where registers have no room for one.
  template <typename Sums> bool chooseTerms(ThinTile &tile, int64_t step, const Sums &sums) const {
    tile.terms = std::clamp<int64_t>(terms() / step, 1, kMostTerms);
    while (tile.terms > 1 && (sums(tile) > kMostSums || !fits(tile, sums(tile))))
      --tile.terms;
    for (int64_t even = tile.terms; 2 * even >= tile.terms; --even)
      if (terms() % (even * step) == 0) {
        tile.terms = even;
        break;
      }
    return fits(tile, sums(tile));
  }

  /// Lanes have neighbouring columns each, and all units of a block share the sums.
  void addColumns(const ReadInfo &matrix) {
    const int64_t blocksWanted = target.cores / pointsOf(view, roles.outside);
    std::vector<int64_t> widths = {widest(matrix, roles.columns.back())};
    int64_t narrow = widths[0]; // so that all cores have columns
    while (narrow > 1 && columns() < narrow * target.lanes * blocksWanted)
      narrow /= 2;
    if (narrow < widths[0])
      widths.push_back(narrow);
    for (const int64_t neighbours : widths)
      for (const int threads : {1024, 512, 256}) {
        ThinTile tile{.units = target.unitsOf(threads),
                      .neighbours = neighbours,
                      .operands = neighbours + rows()};
        const auto sums = [&](const ThinTile &t) { return t.terms * neighbours * rows(); };
        if (tile.units <= target.maxUnits && tile.units <= terms() &&
            chooseTerms(tile, tile.units, sums))
          found.push_back(tile);
      }
  }

  /// Lanes have neighbouring terms each; a unit has a column or a few, or the block has one.
  void addTerms(const ReadInfo &matrix) {
    int64_t neighbours = widest(matrix, view.reduction.back());
    while (neighbours > 1 && neighbours * target.lanes > terms())
      neighbours /= 2;
    if (terms() < target.lanes)
      return;
    // Each column of a unit reads all rows again: no more of them than it reads of the matrix, where registers allow.
    constexpr int64_t kMostColumns = 4;
    const auto least = std::min<int64_t>(
        kMostColumns, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows()))));
    for (const bool wholeBlock : {false, true})
      for (int64_t columns = least; columns <= (wholeBlock ? least : kMostColumns); columns *= 4) {
        constexpr int kThreads = 256;
        ThinTile tile{.units = target.unitsOf(kThreads),
                      .neighbours = neighbours,
                      .operands = neighbours * (columns + rows()),
                      .columns = columns,
                      .wholeBlock = wholeBlock};
        const auto sums = [&](const ThinTile &t) { return t.terms * columns * rows(); };
        const int64_t step = neighbours * target.lanes * (wholeBlock ? tile.units : 1);
        if ((!wholeBlock || step <= terms()) && chooseTerms(tile, step, sums))
          found.push_back(tile);
      }
  }

  const View &view;
  const Target &target;
  const ContractionRoles roles;
  std::vector<ThinTile> found;
};

} // namespace

std::vector<ThinTile> thinTiles(const View &view) { return ThinTiles(view).ofColumns(); }

std::vector<ThinTile> thinRowTiles(const View &view) { return ThinTiles(view).ofTerms(); }

} // namespace fusec::tiling

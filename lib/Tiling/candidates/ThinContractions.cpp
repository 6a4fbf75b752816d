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
#include "Expr/TurnsOfGroup.h"
#include "Gir/Liveness.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/candidates/LoopTemplates.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kLeastMatrix = 1 << 11; // elements: smaller ones take a launch and little else
constexpr int64_t kMostTerms = 4;         // that a thread reads at once
constexpr int64_t kMostSums = 32;         // that it then has

struct ThinTile {
  int units = 1;           // of a block
  int64_t neighbours = 1;  // elements of the matrix side by side in a thread
  int64_t terms = 1;       // of the sum, so many neighbours each, that it reads at once
  int64_t operands = 1;    // that each of the terms has in registers
  int64_t columns = 1;     // of a unit whose lanes share their sums
  bool wholeBlock = false; // shares them
};

class ThinContractions {
public:
  explicit ThinContractions(const View &view) : view(view), target(*view.target), roles(view) {}

  Candidates run() {
    if (view.reduction.empty() || !isThin() ||
        columns() * pointsOf(view, view.reduction) < kLeastMatrix)
      return {};
    if (const ReadInfo *matrix = matrixAlong(roles.columns.back()))
      addThin(*matrix);
    if (const ReadInfo *matrix = matrixAlong(view.reduction.back()))
      addThinRows(*matrix);
    return std::move(found);
  }

private:
  /// Few rows, or one that is all that the sum has beside the matrix.
  bool isThin() const {
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
  void addThin(const ReadInfo &matrix) {
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
          found.push_back(thin(tile));
      }
  }

  Schedule thin(const ThinTile &tile) {
    ScheduleBuilder b(view, "thin", tile.units, target.lanes);
    std::vector<LoopNode> around = begin(b);
    around.push_back(ScheduleBuilder::loop(LoopKind::Block, n, tile.neighbours * target.lanes));
    std::vector<LoopNode> walk = outerSums(b);
    for (const LoopNode &loop : sharedByUnits(view, b.addReduction("k", {view.reduction.back()}),
                                              tile.units, static_cast<int>(tile.terms)))
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

  /// Lanes have neighbouring terms each; a unit has a column or a few, or the block has one.
  void addThinRows(const ReadInfo &matrix) {
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
          found.push_back(thinRows(tile));
      }
  }

  Schedule thinRows(const ThinTile &tile) {
    ScheduleBuilder b(view, "thin-rows", tile.units, target.lanes);
    std::vector<LoopNode> around = begin(b);
    const int64_t step = tile.neighbours * target.lanes;
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
  const Target &target;
  const ContractionRoles roles;
  AxisId n, m; // of the schedule that is being made
  Candidates found;
};

} // namespace

Candidates thinContractionCandidates(const View &view) { return ThinContractions(view).run(); }

} // namespace fusec::tiling

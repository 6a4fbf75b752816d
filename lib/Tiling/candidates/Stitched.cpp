// Schedules of stitched patterns: several reductions and maps over common rows in one kernel.
//
// All equations run inside the loops over the rows that they share (Expr/Rows.h), nest after nest (FusedNests.h). A
// value of one element a row stays in registers, as does what its own nest alone reads; a longer one goes to the
// block's own memory while there is room, else to device memory, where only its own block reads it. Softmax of [m,k] on
// a CPU:
//
//   block m:8 { seq m:1 {
//     init e0  seq v1:64 { unroll v1:16 { lane v1:1 { compute e0 } } }  combine e0      # row maximum
//     init e2  seq v2:64 { ... { compute e1 compute e2 } } }  combine e2                # e^(x - maximum), sum
//     compute e3                                                                        # 1 / sum
//     seq v3:64 { unroll v3:16 { lane v3:1 { compute e4 } } } } }                       # product
//
// On a GPU a row belongs to a unit (FusionStitching's warp composition) or to a block (block composition). Equations
// without common rows run in one block, which has all that they make: right for what is smaller than a launch.
#include "Expr/Cascade.h"
#include "Expr/Rows.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/FusedNests.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/candidates/StitchPlacement.h"
#include "Tiling/counts/CountWork.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace fusec::tiling {

namespace {

/// Lane: a block has as many neighbouring rows as a unit has lanes, a row each; its units share what is inside them.
enum class RowOwner : uint8_t { Unit, Block, Lane };
/// Who makes a sum of a row's columns. Lane: each its own, on a CPU vectors of neighbours; Unit: lanes share what it
/// sums; Units (on a GPU): a lane for each, and all units share what it sums.
enum class ColumnSums : uint8_t { Lane, Unit, Units };
constexpr int kThreads = 256; // of a block on a GPU
constexpr AxisId kRows{0};

/// How one nest's loops are made.
struct NestShape {
  int unroll; // vectors of a step along a row
  ColumnSums sums = ColumnSums::Lane;
  /// On a GPU: a lane has its elements of a step side by side, in place of those of other vectors.
  bool sideBySide = false;
};

struct StitchShape {
  RowOwner owner;
  std::optional<NestShape> nests; // of all nests alike; absent: the cheapest of each
  int threads = kThreads;         // of a block on a GPU
};

class Stitch {
public:
  Stitch(const ScheduledProgram &program, const Target &target, const WorkMeter &meter,
         std::vector<int> rowPositions, StitchShape shape)
      : program(program), target(target), meter(meter), equations(program.equations),
        rowPositions(std::move(rowPositions)), shape(shape), levels(program) {}

  Schedule build() {
    const int units = target.unitsOf(shape.threads);
    const bool oneBlock = rowPositions.empty();
    schedule.name = oneBlock                                     ? GeneratorName("one-block")
                    : shape.owner == RowOwner::Lane              ? GeneratorName("stitch-lanes")
                    : shape.owner == RowOwner::Unit && units > 1 ? GeneratorName("stitch-units")
                                                                 : GeneratorName("stitch");
    schedule.units = units;
    schedule.lanes = target.lanes;
    if (!oneBlock)
      addRows();
    pieceUnits = shape.owner == RowOwner::Unit ? 1 : units;
    const int rowsAtOnce = shape.owner == RowOwner::Unit   ? units
                           : shape.owner == RowOwner::Lane ? target.lanes
                                                           : 1;
    levels.sharedLeft = target.sharedBytesPerBlock / rowsAtOnce;
    std::vector<LoopNode> around; // loops over the rows
    if (oneBlock) {
    } else if (!target.blocksHaveUnits()) {
      around = {ScheduleBuilder::loop(LoopKind::Block, kRows, rowsPerBlock()),
                ScheduleBuilder::loop(LoopKind::Seq, kRows, 1)};
    } else if (shape.owner == RowOwner::Unit) {
      around = {ScheduleBuilder::loop(LoopKind::Block, kRows, units),
                ScheduleBuilder::loop(LoopKind::Unit, kRows, 1),
                ScheduleBuilder::loop(LoopKind::Seq, kRows, 1)};
    } else {
      around = {ScheduleBuilder::loop(LoopKind::Block, kRows, rowsAtOnce)};
    }
    auto treeOf = [&](std::vector<TreeNode> row) {
      return around.empty() ? std::move(row)
                            : std::vector{ScheduleBuilder::nest(around, std::move(row))};
    };
    std::vector<TreeNode> row;
    for (const FusedNest &nest : makeNests(equations, rowPositions)) {
      for (size_t i = 0; i < nest.equations.size(); ++i)
        levels.place(nest, i, schedule);
      addShaped(nest, treeOf, row);
    }
    schedule.tree = treeOf(std::move(row));
    return schedule;
  }

private:
  void addRows() {
    ScheduleAxis m{"m", {{false, rowPositions, {}}}, DimExpr(1)};
    for (size_t e = 0; e < equations.size(); ++e)
      m.uses[0].equations.push_back(static_cast<int>(e));
    for (int p : rowPositions)
      m.extent = m.extent * equations[0]->axes[p].extent;
    schedule.axes.push_back(std::move(m));
  }

  /// Nests run one after the other, so the cheapest kernel has the cheapest of each.
  template <typename F>
  void addShaped(const FusedNest &nest, F &&treeOf, std::vector<TreeNode> &row) {
    if (shape.nests) {
      nestShape = *shape.nests;
      return addNest(nest, row);
    }
    std::vector<NestShape> shapes = {{4}, {1}};
    if (nest.columns && target.vectorLanes)
      shapes.push_back({1, ColumnSums::Unit});
    else if (nest.columns && shape.owner != RowOwner::Lane)
      shapes.insert(shapes.end(), {{4, ColumnSums::Unit}, {1, ColumnSums::Unit}});
    if (nest.columns && shape.owner == RowOwner::Block && pieceUnits > 1)
      shapes.insert(shapes.end(), {{4, ColumnSums::Units}, {1, ColumnSums::Units}});
    if (std::ranges::any_of(nest.equations, [&](int e) { return !equations[e]->states.empty(); }))
      shapes.push_back({8}); // fewer corrections
    const Schedule before = schedule;
    Schedule best;
    std::vector<TreeNode> bestNodes;
    double lowest = 0;
    for (const NestShape &tried : shapes) {
      schedule = before;
      nestShape = tried;
      std::vector<TreeNode> nodes;
      addNest(nest, nodes);
      schedule.tree = treeOf(nodes);
      const double seconds = cost::latency(meter.instructions(schedule), target);
      if (!bestNodes.empty() && seconds >= lowest)
        continue;
      lowest = seconds;
      best = std::move(schedule);
      bestNodes = std::move(nodes);
    }
    schedule = std::move(best);
    row.insert(row.end(), bestNodes.begin(), bestNodes.end());
  }

  /// A statement about each of the rows that lanes own, or about the only one.
  TreeNode overRows(TreeNode leaf) const {
    return shape.owner == RowOwner::Lane
               ? ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Lane, kRows, 1)},
                                       {std::move(leaf)})
               : leaf;
  }

  void addNest(const FusedNest &nest, std::vector<TreeNode> &row) {
    const int head = nest.equations[0];
    if (nest.columns)
      return addColumns(head, row);
    if (nest.dims[0].empty()) { // one value a row
      row.push_back(overRows(ScheduleBuilder::leaf(LeafKind::Compute, head)));
      return;
    }
    std::vector<std::vector<LeafNode>> computes(1); // by rank: what is no cascade has the first
    std::vector<TreeNode> combines;
    for (int e : nest.equations) {
      const int last = std::max(0, lastRank(*equations[e]));
      computes.resize(std::max(computes.size(), static_cast<size_t>(last) + 1));
      for (int rank = 0; rank <= last; ++rank)
        computes[rank].push_back(ScheduleBuilder::leaf(LeafKind::Compute, e, rank));
      if (equations[e]->kind != EquationKind::Reduction)
        continue;
      row.push_back(ScheduleBuilder::leaf(LeafKind::Init, e));
      combines.push_back(ScheduleBuilder::leaf(LeafKind::Combine, e));
      if (std::ranges::any_of(equations[e]->outputs,
                              [&](TensorId t) { return levels.of(t) != MemLevel::Register; }))
        combines.push_back(overRows(ScheduleBuilder::leaf(LeafKind::Store, e)));
    }
    row.push_back(rankByRank(loopsOver(nest), computes, equations));
    row.insert(row.end(), combines.begin(), combines.end());
  }

  /// Loops over a nest's axes: the outer ones in order, vectors along the last one.
  std::vector<LoopNode> loopsOver(const FusedNest &nest) {
    const Equation &head = *equations[nest.equations[0]];
    const std::vector<int> &dims = nest.dims[0];
    const int lanes = target.lanes;
    // Neighbours that every equation walks without a gap are one axis.
    std::vector<std::vector<size_t>> groups = {{0}};
    for (size_t i = 1; i < dims.size(); ++i) {
      bool joins = true;
      for (size_t e = 0; e < nest.equations.size(); ++e)
        joins = joins && nest.dims[e][i] == nest.dims[e][i - 1] + 1 &&
                mergeable(program.facts[nest.equations[e]], nest.dims[e][i - 1]);
      if (joins)
        groups.back().push_back(i);
      else
        groups.push_back({i});
    }
    auto elements = [&](const std::vector<size_t> &group) {
      int64_t product = 1;
      for (size_t i : group)
        product = std::min(product * optOf(head.axes[dims[i]].extent), int64_t{1} << 24);
      return product;
    };
    // Several units share all axes, as vectors do where the last one is much shorter than they are.
    if (groups.size() > 1 && (pieceUnits > 1 || elements(groups.back()) * 2 <= lanes)) {
      std::vector<size_t> all(dims.size());
      std::iota(all.begin(), all.end(), size_t{0});
      groups = {all};
    }
    std::vector<LoopNode> loops;
    for (size_t g = 0; g + 1 < groups.size(); ++g)
      loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, addAxis(nest, groups[g]), 1));
    AxisId x = addAxis(nest, groups.back());
    // No more for a unit than its share: else the last ones have nothing to do.
    const bool rowsOnLanes = shape.owner == RowOwner::Lane;
    const int wide = rowsOnLanes ? 1 : lanes;
    int64_t vector =
        std::min(int64_t{wide} * nestShape.unroll,
                 roundUp((elements(groups.back()) + pieceUnits - 1) / pieceUnits, wide));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Seq, x, pieceUnits * vector));
    if (pieceUnits > 1)
      loops.push_back(ScheduleBuilder::loop(LoopKind::Unit, x, vector));
    if (nestShape.sideBySide && vector == int64_t{wide} * nestShape.unroll) {
      loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, nestShape.unroll));
      loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, x, 1));
      return loops;
    }
    if (vector > wide)
      loops.push_back(ScheduleBuilder::loop(LoopKind::Unroll, x, wide));
    loops.push_back(ScheduleBuilder::loop(LoopKind::Lane, rowsOnLanes ? kRows : x, 1));
    return loops;
  }

  AxisId addAxis(const FusedNest &nest, const std::vector<size_t> &group) {
    ScheduleAxis axis{"v" + std::to_string(schedule.axes.size()), {}, DimExpr(1)};
    for (size_t i : group)
      axis.extent = axis.extent * equations[nest.equations[0]]->axes[nest.dims[0][i]].extent;
    for (size_t e = 0; e < nest.equations.size(); ++e) {
      AxisUse use;
      use.reduction = equations[nest.equations[e]]->kind == EquationKind::Reduction;
      for (size_t i : group)
        use.positions.push_back(nest.dims[e][i]);
      auto same = std::ranges::find_if(axis.uses, [&](const AxisUse &u) {
        return u.reduction == use.reduction && u.positions == use.positions;
      });
      if (same == axis.uses.end())
        same = axis.uses.insert(same, std::move(use));
      same->equations.push_back(nest.equations[e]);
    }
    schedule.axes.push_back(std::move(axis));
    return AxisId(schedule.axes.size() - 1);
  }

  /// A reduction that keeps spatial axes inside a row, or has nothing to reduce.
  void addColumns(int e, std::vector<TreeNode> &row) {
    View view = makeView(program, target, e, -1, rowPositions);
    Schedule piece;
    std::map<AxisId, AxisId> same;
    if (shape.owner == RowOwner::Lane) {
      piece = rowLaneLoops(view, pieceUnits, nestShape.unroll);
      same = {{kRows, kRows}};
    } else if (view.spatial.empty())
      piece = valueLoops(view, pieceUnits, nestShape.unroll);
    else if (nestShape.sums == ColumnSums::Unit)
      piece = rowLoops(view, pieceUnits);
    else if (target.vectorLanes)
      piece = columnLoops(view, nestShape.unroll);
    else if (nestShape.sums == ColumnSums::Units && !view.reduction.empty() &&
             view.opt(view.reduction.back()) >= pieceUnits)
      piece = tileLoops(view, pieceUnits, nestShape.unroll);
    else
      piece = laneLoops(view, pieceUnits);
    for (TreeNode &node : spliceLoops(schedule, std::move(piece), std::to_string(e), same))
      row.push_back(std::move(node));
    if (view.spatial.empty() && levels.of(equations[e]->outputs[0]) != MemLevel::Register)
      row.push_back(overRows(ScheduleBuilder::leaf(LeafKind::Store, e)));
  }

  int64_t rowsPerBlock() const {
    constexpr int64_t kBlocks = 16; // enough for several cores
    constexpr int64_t kRowsAtLeast =
        8; // one is written while the next is computed (Gir/DelayStores.cpp)
    int64_t rows = 1, longest = 1;
    for (int p : rowPositions)
      rows *= optOf(equations[0]->axes[p].extent);
    for (const Equation *e : equations) {
      int64_t elements = 1;
      for (size_t p = 0; p < e->axes.size(); ++p)
        if (std::ranges::find(rowPositions, static_cast<int>(p)) == rowPositions.end())
          elements = std::min<int64_t>(elements * optOf(e->axes[p].extent), int64_t{1} << 24);
      longest = std::max(longest, elements);
    }
    return std::clamp<int64_t>(std::max(target.core.elementsPerBlock / longest, kRowsAtLeast), 1,
                               std::max<int64_t>(1, rows / kBlocks));
  }

  int64_t optOf(const DimExpr &extent) const {
    return std::max<int64_t>(1, extent.evaluate(program.symbols).value_or(1));
  }

  const ScheduledProgram &program;
  const Target &target;
  const WorkMeter &meter;
  const std::vector<const Equation *> &equations;
  std::vector<int> rowPositions;
  StitchShape shape;
  NestShape nestShape{};
  Schedule schedule;
  StitchPlacement levels;
  int pieceUnits = 1;
};

} // namespace

namespace {

/// On a GPU so many outputs keep several blocks busy: one block is no kernel for them.
bool outgrowsBlock(const Equation &e, const std::vector<int64_t> &symbols) {
  constexpr int64_t kOutputs = 4096;
  int64_t outputs = 1;
  for (int p = 0; p < e.numSpatial; ++p)
    outputs = std::min(outputs * e.axes[p].extent.evaluate(symbols).value_or(1), kOutputs);
  return outputs >= kOutputs;
}

/// Memory that the rows walk lies along them, not inside them: neighbours share its sectors.
bool haveNeighbouringRows(const ScheduledProgram &program, const std::vector<int> &rows) {
  uint64_t ofRows = 0;
  for (int p : rows)
    ofRows |= uint64_t{1} << p;
  const auto last = static_cast<size_t>(rows.back());
  for (const EquationFacts &facts : program.facts)
    for (size_t r = 0; r < facts.reads.size(); ++r)
      if (const std::optional<FlatAccess> &access = facts.accesses[r];
          access && (facts.axes[facts.reads[r]] & ~ofRows) != 0 && access->stride[last].isConst(1))
        return true;
  return false;
}

/// Rows of the tensors that an equation walks along its last axis begin at multiples of so many elements.
bool haveEvenRows(const ScheduledProgram &program, int64_t elements) {
  return std::ranges::any_of(program.equations, [&](const Equation *e) {
    return !e->axes.empty() && e->axes.back().extent.divisibleBy(elements, program.expr.symbols);
  });
}

/// Has an axis of no elements: there is nothing to save, and tiles have no size.
bool isEmpty(const Equation &e) {
  return std::ranges::any_of(e.axes, [](const Axis &axis) { return axis.extent.isConst(0); });
}

} // namespace

Candidates stitchCandidates(const ScheduledProgram &program, const Target &target,
                            const WorkMeter &meter) {
  const std::vector<const Equation *> &equations = program.equations;
  for (const Equation *e : equations)
    if ((e->kind != EquationKind::Map && e->kind != EquationKind::Reduction) || isEmpty(*e))
      return {};
  std::vector<int> rows = commonRows(equations);
  const bool units = target.blocksHaveUnits();
  const RowOwner first = rows.empty() ? RowOwner::Block : RowOwner::Unit;
  std::vector<StitchShape> shapes;
  // First, since equals are taken in this order: what the counts do not see are the instructions that it saves.
  constexpr int kNeighbours = 4; // 16 bytes of f32
  if (units && !rows.empty() && haveEvenRows(program, kNeighbours))
    for (const RowOwner owner : {RowOwner::Unit, RowOwner::Block})
      shapes.push_back({owner, NestShape{kNeighbours, ColumnSums::Lane, true}});
  shapes.insert(shapes.end(),
                {{first, std::nullopt}, {first, NestShape{4}}, {first, NestShape{1}}});
  if (units) {
    const StitchShape widest = rows.empty() ? StitchShape{first, std::nullopt, 4 * kThreads}
                                            : StitchShape{RowOwner::Block, std::nullopt};
    shapes.push_back(widest);
  }
  const bool cascades =
      std::ranges::any_of(equations, [](const Equation *e) { return !e->states.empty(); });
  if (units && !cascades && !rows.empty() && haveNeighbouringRows(program, rows))
    for (int threads : {kThreads, 4 * kThreads})
      shapes.push_back({RowOwner::Lane, std::nullopt, threads});
  // A cascade runs along its reduced axes alone.
  for (const FusedNest &nest : makeNests(equations, rows))
    if (nest.columns && !equations[nest.equations[0]]->states.empty())
      return {};
  if (rows.empty() && units)
    for (const Equation *e : equations)
      if (outgrowsBlock(*e, program.symbols))
        return {};
  Candidates out;
  for (const StitchShape &shape : shapes)
    out.push_back(Stitch(program, target, meter, rows, shape).build());
  return out;
}

} // namespace fusec::tiling

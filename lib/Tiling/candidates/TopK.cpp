// Schedules of topk, and what they cost: selection takes k passes over a row, or over its tiles, sorting log^2 of its
// length.
#include "Tiling/schedule/TopK.h"
#include "Expr/SortKey.h"
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/ScheduleBuilder.h"

namespace fusec::tiling {

namespace {

/// Axes of a schedule of topk. A row is a point of all spatial axes but the last one.
struct TopKAxes {
  AxisId row{}; // -1: the operand has one row
  AxisId place, searched;
};

TopKAxes addAxes(ScheduleBuilder &b) {
  const Equation &e = b.view.equation();
  TopKAxes axes;
  std::vector<int> rows;
  for (int p = 0; p + 1 < e.numSpatial; ++p)
    rows.push_back(p);
  if (!rows.empty())
    axes.row = b.addSpatial("row", {rows});
  axes.place = b.addSpatial("place", {{e.numSpatial - 1}});
  axes.searched = b.addReduction("j", {{e.numSpatial}});
  // An output that nobody reads takes no memory.
  for (TensorId t : e.outputs)
    if (b.view.tensor(t).kind == TensorKind::Temp)
      b.schedule.edges.push_back({t, MemLevel::Register});
  return axes;
}

/// On a CPU a block takes enough rows to be worth its start.
std::vector<TreeNode> overRows(const TopKAxes &axes, std::vector<LoopNode> loops,
                               std::vector<TreeNode> row) {
  return axes.row < 0 ? row : std::vector<TreeNode>{ScheduleBuilder::nest(std::move(loops), row)};
}

std::vector<LoopNode> rowLoops(const TopKAxes &axes, const Target &target, int64_t workOfRow) {
  if (target.blocksHaveUnits())
    return {ScheduleBuilder::loop(LoopKind::Block, axes.row, 1)};
  int64_t rows =
      std::max<int64_t>(1, target.core.elementsPerBlock / std::max<int64_t>(1, workOfRow));
  return {ScheduleBuilder::loop(LoopKind::Block, axes.row, rows),
          ScheduleBuilder::loop(LoopKind::Seq, axes.row, 1)};
}

/// Lanes walk the row; a unit takes a row, or the whole block does.
Schedule selection(const View &view, bool wholeBlock) {
  const Target &target = *view.target;
  const Equation &e = view.equation();
  bool unitARow = target.blocksHaveUnits() && !wholeBlock && e.numSpatial > 1;
  int lanes = target.lanes, units = unitARow || wholeBlock ? 256 / lanes : 1;
  ScheduleBuilder b(view, wholeBlock ? GeneratorName("select-block") : GeneratorName("select"),
                    units, lanes);
  TopKAxes axes = addAxes(b);
  std::vector<LoopNode> search;
  if (wholeBlock)
    search = {ScheduleBuilder::loop(LoopKind::Seq, axes.searched, int64_t{units} * lanes),
              ScheduleBuilder::loop(LoopKind::Unit, axes.searched, lanes)};
  else
    search = {ScheduleBuilder::loop(LoopKind::Seq, axes.searched, lanes)};
  search.push_back(ScheduleBuilder::loop(LoopKind::Lane, axes.searched, 1));
  TreeNode pass = ScheduleBuilder::nest(
      {ScheduleBuilder::loop(LoopKind::Seq, axes.place, 1)},
      {ScheduleBuilder::leaf(LeafKind::Init, view.first),
       ScheduleBuilder::nest(search, {ScheduleBuilder::leaf(LeafKind::Compute, view.first)}),
       ScheduleBuilder::leaf(LeafKind::Combine, view.first),
       ScheduleBuilder::leaf(LeafKind::Store, view.first)});
  std::vector<LoopNode> loops;
  if (unitARow)
    loops = {ScheduleBuilder::loop(LoopKind::Block, axes.row, units),
             ScheduleBuilder::loop(LoopKind::Unit, axes.row, 1)};
  else
    loops = rowLoops(axes, target, view.opt({e.numSpatial}) * view.opt({e.numSpatial - 1}));
  b.schedule.tree = overRows(axes, loops, {pass});
  return b.schedule;
}

Schedule sorting(const View &view, int64_t most) {
  const Target &target = *view.target;
  const auto typical = std::max<int64_t>(1, view.opt({view.equation().numSpatial}));
  const int64_t padded =
      std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(typical))));
  int lanes = target.lanes, units = 1;
  if (target.blocksHaveUnits())
    units = static_cast<int>(
        std::clamp<int64_t>(padded / 2 / lanes, 1, std::min(target.maxUnits, 512 / lanes)));
  ScheduleBuilder b(view, "sort", units, lanes);
  TopKAxes axes = addAxes(b);
  b.schedule.tree = overRows(axes, rowLoops(axes, target, padded * 16),
                             {ScheduleBuilder::leaf(LeafKind::Sort, view.first),
                              ScheduleBuilder::leaf(LeafKind::Store, view.first)});
  return b.schedule;
}

/// One unit finds each place among the first of all tiles of a row.
Schedule tileSelection(const View &view) {
  const Equation &e = view.equation();
  ScheduleBuilder b(view, "select-tiles", 1, view.target->lanes);
  const TopKAxes axes = addAxes(b);
  const int64_t work = view.opt({e.numSpatial}) + view.opt({e.numSpatial - 1}) * view.target->lanes;
  b.schedule.tree = overRows(axes, rowLoops(axes, *view.target, work),
                             {ScheduleBuilder::leaf(LeafKind::Select, view.first),
                              ScheduleBuilder::leaf(LeafKind::Store, view.first)});
  return b.schedule;
}

int64_t scratchBytes(const View &view, int64_t padded) {
  DType key = sortKeyType(view.tensor(view.equation().opaqueInputs[0]).type);
  return padded * (sizeInBytes(key) + sizeInBytes(DType::I32));
}

} // namespace

Candidates topKCandidates(const View &view) {
  const Equation &e = view.equation();
  Candidates out = {selection(view, false)};
  if (view.target->blocksHaveUnits())
    out.push_back(selection(view, true));
  std::optional<int64_t> padded =
      paddedLength(e.axes[e.numSpatial].extent, view.program->expr.symbols);
  if (padded && scratchBytes(view, *padded) <= view.target->sharedBytesPerBlock)
    out.push_back(sorting(view, *padded));
  if (padded && !view.target->blocksHaveUnits() && !e.axes[e.numSpatial - 1].extent.isConst(0) &&
      sortKeyType(view.tensor(e.opaqueInputs[0]).type) == DType::I32)
    out.push_back(tileSelection(view));
  return out;
}

} // namespace fusec::tiling

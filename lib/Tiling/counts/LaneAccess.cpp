#include "Tiling/counts/LaneAccess.h"

#include "Tiling/schedule/Schedule.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::tiling {

double elementsOf(const std::vector<int64_t> &extents) {
  double elements = 1;
  for (int64_t extent : extents)
    elements *= double(extent);
  return elements;
}

double loadsOfStage(const Schedule &schedule, const ExprProgram &pattern,
                    const EquationFacts &reader, const Operand &operand,
                    const std::vector<int64_t> &extents) {
  const CopiedDigit along = copiedDigit(schedule, pattern, reader.equation, operand,
                                        reader.accesses[operand.read], extents);
  const double elements = elementsOf(extents), vectors = elements / schedule.lanes;
  // Places that no formula names are gathers, which are counted by themselves.
  const bool oneByOne = !along.sideBySide && reader.accesses[operand.read];
  return (oneByOne ? elements : vectors) + vectors;
}

/// Turns of the innermost Unroll loop whose axis ends in a position that lies side by side; 1 where there is none.
template <typename F>
static double turnsAlong(const Schedule &schedule, int equation,
                         const std::vector<const TreeNode *> &path,
                         const std::vector<double> &trips, F sideBySide) {
  for (size_t i = path.size(); i-- > 0;) {
    if (path[i]->loop == LoopKind::Seq || path[i]->loop == LoopKind::Block)
      break;
    const AxisUse *use = path[i]->loop == LoopKind::Unroll && path[i]->step == 1
                             ? schedule.axes[path[i]->axis].in(equation)
                             : nullptr;
    if (use && sideBySide(use->positions.back()))
      return std::min(trips[i], double(schedule.lanes));
  }
  return 1;
}

double turnsStored(const Schedule &schedule, const Equation &e, int equation,
                   const std::vector<const TreeNode *> &path, const std::vector<double> &trips) {
  int last = e.numSpatial - 1;
  while (last > 0 && e.axes[last].extent.isConst(1))
    --last;
  return turnsAlong(schedule, equation, path, trips,
                    [&](int position) { return position == last; });
}

double turnsRead(const Schedule &schedule, const EquationFacts &facts, ReadOrdinal read,
                 AxisId laneAxis, const std::vector<const TreeNode *> &path,
                 const std::vector<double> &trips) {
  const std::optional<FlatAccess> &access = facts.accesses[read.read];
  const AxisUse *lanes = laneAxis >= 0 ? schedule.axes[laneAxis].in(read.equation) : nullptr;
  if (!access || !lanes || operandOf(schedule, read.equation, read.read) ||
      facts.equation.body[facts.reads[read.read]].op != ScalarOp::Read)
    return 1;
  // Lanes that lie closer are not read in rows.
  const DimExpr &distance = access->stride[lanes->positions.back()];
  if (distance.isConst() && std::abs(distance.constValue()) <= schedule.lanes / 2)
    return 1;
  return turnsAlong(schedule, read.equation, path, trips,
                    [&](int position) { return access->stride[position].isConst(1); });
}

bool lanesLieApart(const Schedule &schedule, const EquationFacts &facts, ReadOrdinal read,
                   AxisId laneAxis, const StagedExtents *staged) {
  const AxisUse *use = laneAxis >= 0 ? schedule.axes[laneAxis].in(read.equation) : nullptr;
  if (!use)
    return false;
  const int position = use->positions.back();
  if (const Operand *operand = operandOf(schedule, read.equation, read.read)) {
    if (!staged || operand->level != MemLevel::Shared)
      return false;
    const auto extents = staged->find(static_cast<int>(operand - schedule.operands.data()));
    if (extents == staged->end())
      return false;
    const std::optional<int64_t> stride =
        stagedStride(schedule, facts.equation, *operand, extents->second, position);
    return !stride || (*stride != 0 && *stride != 1);
  }
  const std::optional<FlatAccess> &access = facts.accesses[read.read];
  return !access || !(access->stride[position].isConst(0) || access->stride[position].isConst(1));
}

} // namespace fusec::tiling

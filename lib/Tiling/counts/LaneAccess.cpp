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

double turnsSideBySide(const Schedule &schedule, const Equation &e, int equation,
                       const std::vector<const TreeNode *> &path,
                       const std::vector<double> &trips) {
  int last = e.numSpatial - 1;
  while (last > 0 && e.axes[last].extent.isConst(1))
    --last;
  for (size_t i = path.size(); i-- > 0;) {
    if (path[i]->loop == LoopKind::Seq || path[i]->loop == LoopKind::Block)
      break;
    const AxisUse *use = path[i]->loop == LoopKind::Unroll && path[i]->step == 1
                             ? schedule.axes[path[i]->axis].in(equation)
                             : nullptr;
    if (use && use->positions.back() == last)
      return std::min(trips[i], double(schedule.lanes));
  }
  return 1;
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

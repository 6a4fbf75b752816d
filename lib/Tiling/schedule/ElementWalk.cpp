#include "Tiling/schedule/ElementWalk.h"

#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>

namespace fusec::tiling {

const Loops *loopsAround(const BoundSchedule &bound, int equation) {
  const Loops *loops = bound.loopsOf(equation);
  for (std::span<const TreeNode> phase : phasesOf(bound.schedule().tree))
    if (loops && isPack(phase) &&
        std::any_of(phase.begin(), phase.end(),
                    [&](const TreeNode &part) { return &part == loops->front(); }))
      return nullptr;
  return loops;
}

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions) {
  Runs runs;
  for (int p : positions) {
    const DimExpr &extent = e.axes[static_cast<size_t>(p)].extent,
                  &stride = access.stride[static_cast<size_t>(p)];
    if (extent.isConst(1))
      continue;
    if (!runs.empty() && runs.back().second == extent * stride)
      runs.back() = {runs.back().first * extent, stride};
    else
      runs.emplace_back(extent, stride);
  }
  return runs;
}

std::optional<FlatAccess> plainAccess(const BoundSchedule &bound, const ReadPlace &place) {
  const Equation &e = bound.equation(place.equation);
  if (place.rank != 0 || !e.states.empty() || e.body[bound.node(place)].op != ScalarOp::Read ||
      (e.kind != EquationKind::Map && e.kind != EquationKind::Reduction) ||
      bound.operand(place.equation, place.read))
    return std::nullopt;
  const std::optional<FlatAccess> &access =
      bound.facts(place.equation).accesses[static_cast<size_t>(place.read)];
  return access && access->rests.empty() ? access : std::nullopt;
}

bool haveConstantTrips(const BoundSchedule &bound, const ReadPlace &place, const Loops &loops) {
  for (const TreeNode *loop : loopsOfPersistent(bound, place, loops)) {
    const DimExpr &extent = bound.schedule().axes[static_cast<size_t>(loop->axis)].extent;
    // Loops in order end with the axis, and units past its end have nothing to do.
    auto isCut = [&](const TreeNode *tile) {
      return !(extent.isConst() && extent.constValue() % tile->step == 0);
    };
    const TreeNode *around = nullptr;
    bool pastEnd = false;
    for (const TreeNode *outer : loops) {
      if (outer == loop)
        break;
      if (outer->axis != loop->axis)
        continue;
      pastEnd = pastEnd || (around && outer->loop == LoopKind::Unit && isCut(around));
      around = outer;
    }
    if (!around ? !extent.isConst() : loop->loop == LoopKind::Seq && (pastEnd || isCut(around)))
      return false;
  }
  return true;
}

bool areShared(const Schedule &schedule, const Loops &loops) {
  auto has = [&](LoopKind kind) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const TreeNode *loop) { return loop->loop == kind; });
  };
  return has(LoopKind::Lane) && (schedule.units == 1 || has(LoopKind::Unit));
}

} // namespace fusec::tiling

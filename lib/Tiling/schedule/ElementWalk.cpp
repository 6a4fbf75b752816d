#include "Tiling/schedule/ElementWalk.h"

#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>

namespace fusec::tiling {

static bool findCompute(std::span<const TreeNode> nodes, int equation,
                        std::vector<const TreeNode *> &around) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop) {
      if (node.leaf == LeafKind::Compute && node.target == equation)
        return true;
      continue;
    }
    around.push_back(&node);
    if (findCompute(node.children, equation, around))
      return true;
    around.pop_back();
  }
  return false;
}

std::optional<std::vector<const TreeNode *>> loopsAround(const Schedule &schedule, int equation) {
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree))
    if (std::vector<const TreeNode *> around;
        !isPack(phase) && findCompute(phase, equation, around))
      return around;
  return std::nullopt;
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

std::optional<FlatAccess> plainAccess(const Schedule &schedule, const ExprProgram &program,
                                      const ReadPlace &place) {
  const Equation &e = *scheduledEquations(program)[static_cast<size_t>(place.equation)];
  const NodeId read = readsOf(e)[static_cast<size_t>(place.read)];
  if (place.rank != 0 || !e.states.empty() || e.body[read].op != ScalarOp::Read ||
      (e.kind != EquationKind::Map && e.kind != EquationKind::Reduction) ||
      operandOf(schedule, place.equation, place.read))
    return std::nullopt;
  std::optional<FlatAccess> access = flatAccess(e, read, program);
  return access && access->rests.empty() ? access : std::nullopt;
}

bool haveConstantTrips(const Schedule &schedule, const Equation &equation, const ReadPlace &place,
                       const std::vector<const TreeNode *> &loops) {
  const std::vector<const TreeNode *> counting =
      loopsOfPersistent(schedule, equation, place, loops);
  for (const TreeNode *loop : counting) {
    const DimExpr &extent = schedule.axes[static_cast<size_t>(loop->axis)].extent;
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

bool areShared(const Schedule &schedule, const std::vector<const TreeNode *> &loops) {
  auto has = [&](LoopKind kind) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const TreeNode *loop) { return loop->loop == kind; });
  };
  return has(LoopKind::Lane) && (schedule.units == 1 || has(LoopKind::Unit));
}

TensorId tensorAt(const ExprProgram &program, const ReadPlace &place) {
  const Equation &e = *scheduledEquations(program)[static_cast<size_t>(place.equation)];
  return e.body[readsOf(e)[static_cast<size_t>(place.read)]].index;
}

} // namespace fusec::tiling

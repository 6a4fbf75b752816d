// The rules of a schedule that depend on the target: its blocks have such units and lanes, and the loops use them all.
#include "Support/Diag.h"
#include "Tiling/counts/PersistentTraffic.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/RuleChecker.h"
#include "Tiling/verify/Verify.h"

namespace fusec {

namespace {

class UnitVerifier {
public:
  explicit UnitVerifier(const Schedule &schedule) : schedule(schedule) {}

  Status run(const Target &target) {
    broken.require(schedule.units <= target.maxUnits,
                   "a block of " + target.name + " has " +
                       (target.maxUnits == 1
                            ? "one unit"
                            : "1 to " + std::to_string(target.maxUnits) + " units") +
                       ", given " + std::to_string(schedule.units));
    broken.require(schedule.lanes == target.lanes,
                   "a unit of " + target.name + " has " + std::to_string(target.lanes) +
                       " lanes, given " + std::to_string(schedule.lanes));
    if (broken.none())
      verifyLoops(schedule.tree);
    return broken.status(schedule);
  }

private:
  void verifyLoops(const std::vector<TreeNode> &nodes) {
    for (const TreeNode &node : nodes) {
      if (!node.isLoop)
        continue;
      if (node.axis >= 0 && (node.loop == LoopKind::Unit || node.loop == LoopKind::Lane))
        verifyIterations(node);
      path.push_back(&node);
      verifyLoops(node.children);
      path.pop_back();
    }
  }

  /// Each unit, or lane, takes one round of the loop.
  void verifyIterations(const TreeNode &node) {
    const ScheduleAxis &axis = schedule.axes[node.axis];
    DimExpr tile = axis.extent;
    for (const TreeNode *outer : path)
      if (outer->axis == node.axis)
        tile = DimExpr(outer->step);
    const bool isUnit = node.loop == LoopKind::Unit;
    const int wanted = isUnit ? schedule.units : schedule.lanes;
    broken.require(ceilDiv(tile, DimExpr(node.step)).isConst(wanted),
                   std::string(name(node.loop)) + " loop over " + axis.name +
                       " has a round for each of the " + std::to_string(wanted) +
                       (isUnit ? " units" : " lanes"));
  }

  const Schedule &schedule;
  std::vector<const TreeNode *> path;
  tiling::RuleChecker broken;
};

} // namespace

Status verify(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  FUSEC_CHECK(verify(schedule, pattern));
  if (tiling::hasTooManyAxes(schedule, target))
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "broken rule: on a CPU it has " + std::to_string(tiling::kMostAxes) +
                          " axes at most"};
  FUSEC_CHECK(UnitVerifier(schedule).run(target));
  if (tiling::hasPersistentReads(schedule) && !tiling::isResident({schedule, pattern}, target))
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "broken rule: rounds and phases hold values where " + target.name +
                          " holds all blocks at once, with their registers and shared memory, and "
                          "has a barrier for them"};
  return success();
}

} // namespace fusec

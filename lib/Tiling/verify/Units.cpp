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
  explicit UnitVerifier(const tiling::BoundSchedule &bound)
      : bound(bound), schedule(bound.schedule()) {}

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
      for (const tiling::Statement &statement : bound.statements())
        for (const TreeNode *loop : statement.loops)
          if (loop->axis >= 0 && (loop->loop == LoopKind::Unit || loop->loop == LoopKind::Lane))
            verifyIterations(*loop);
    return broken.status(schedule);
  }

private:
  /// Each unit, or lane, takes one round of the loop.
  void verifyIterations(const TreeNode &node) {
    const bool isUnit = node.loop == LoopKind::Unit;
    const int wanted = isUnit ? schedule.units : schedule.lanes;
    broken.require(bound.trip(node).isConst(wanted),
                   std::string(name(node.loop)) + " loop over " + schedule.axes[node.axis].name +
                       " has a round for each of the " + std::to_string(wanted) +
                       (isUnit ? " units" : " lanes"));
  }

  const tiling::BoundSchedule &bound;
  const Schedule &schedule;
  tiling::RuleChecker broken;
};

} // namespace

Status verify(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  FUSEC_CHECK(verify(schedule, pattern));
  if (tiling::hasTooManyAxes(schedule, target))
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "broken rule: on a CPU it has " + std::to_string(tiling::kMostAxes) +
                          " axes at most"};
  const tiling::BoundSchedule bound(schedule, pattern);
  FUSEC_CHECK(UnitVerifier(bound).run(target));
  if (tiling::hasPersistentReads(schedule) && !tiling::isResident(bound, target))
    return Diagnostic{Diag::BadIr, "schedule " + schedule.name,
                      "broken rule: rounds and phases hold values where " + target.name +
                          " holds all blocks at once, with their registers and shared memory, and "
                          "has a barrier for them"};
  return success();
}

} // namespace fusec

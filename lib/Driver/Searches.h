#pragma once
#include "Driver/State.h"
#include "Fusion/Plan.h"

namespace fusec {

/// Searches for the target's kernels, with Tiling as the oracle.
Status planTarget(const ExprProgram &program, const PlanOptions &options, TargetState &target);

/// Searches for the schedules of all patterns of the target's plan.
Status scheduleTarget(const PlanOptions &options, TargetState &target);

/// Of a run of plan and schedules. Sizes are the symbols' opt values, as for the search. A branch takes its slower
/// side, a loop runs once.
double predictedSeconds(const TargetState &target);

} // namespace fusec

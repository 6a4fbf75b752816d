#pragma once
#include "Driver/State.h"
#include "Fusion/Plan.h"

namespace fusec {

/// Searches for the target's kernels, with Tiling as the oracle.
Status planTarget(const ExprProgram &program, const PlanOptions &options, TargetState &target);

/// Searches for the schedules of all patterns of the target's plan.
Status scheduleTarget(const PlanOptions &options, TargetState &target);

/// Of plan and schedules: the total that `fusec explain` gives. Sizes are the symbols' opt values, as for the search;
/// both ways of a branch count, a loop runs once.
double predictedSeconds(const TargetState &target);

} // namespace fusec

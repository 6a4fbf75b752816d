#pragma once
#include "Driver/State.h"
#include "Fusion/Plan.h"

namespace fusec {

// What a user wrote (TargetState) and a check refuses is their error; what was found here is a bug, InternalError.

/// Errors of the rules or the lowering of the target's schedules, for whoever made those: a file of decisions does not
/// fit, a dump breaks a rule, the search has a bug.
Diagnostics scheduleFault(Diagnostics errors, const TargetState &target);

/// Searches for the target's kernels, with Tiling as the oracle. `caches`: of the program.
Status planTarget(const ExprProgram &program, const std::vector<CachePair> &caches,
                  const PlanOptions &options, TargetState &target);

/// Searches for the schedules of all patterns of the target's plan.
Status scheduleTarget(const PlanOptions &options, TargetState &target);

/// The rules of all schedules, broken ones told with the model's names.
Status checkSchedules(const ExprProgram &program, const TargetState &target);

/// Kernels of the schedules and the steps that launch them, whose blocks have room on the target: `target.gir`.
Status lowerToGir(const ExprProgram &program, TargetState &target,
                  const PassObserver &observer = {});

/// Predicted seconds of plan and schedules. Symbols have their opt values, as in the search; a loop runs once, and both
/// ways of a branch count where sizes do not tell which one runs (SizedPrediction.h).
double predictedSeconds(const ExprProgram &model, const TargetState &target);

} // namespace fusec

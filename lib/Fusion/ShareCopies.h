#pragma once
#include "Expr/SharedCopies.h"
#include "Fusion/Plan.h"

namespace fusec {

/// The kernels of the program as it is, without copies (BuildPlan.cpp).
Result<Plan> planAsIs(const ExprProgram &program, const Target &target,
                      const ScheduleOracle &oracle, const PlanOptions &options);

} // namespace fusec

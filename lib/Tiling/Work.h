#pragma once
#include "Cost/Cost.h"
#include "Tiling/Schedule.h"

namespace fusec {

/// Work of one schedule, counted over its loop tree at the symbols' opt values. `pattern` is what the schedule is about
/// (ScheduledPattern, one phase of it).
cost::Counts workOf(const Schedule &schedule, const ExprProgram &pattern, const Target &target);

} // namespace fusec

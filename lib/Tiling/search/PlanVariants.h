#pragma once
#include "Tiling/search/SizeVariants.h"

namespace fusec {

/// A pattern of a plan with all that it may run as.
struct PlannedPattern {
  const ExprProgram *program;
  SizedSchedules schedules; // at least one
  int launches = 1;         // of the plan
};

/// The schedules that each of the patterns is compiled with: so few that all launches together are nowhere, among the
/// sizes of the tables, more than kMostSlower times as slow as with the fastest of all, or kMostLeaves of those.
std::vector<std::vector<ScheduleVariant>> planVariants(std::vector<PlannedPattern> patterns);

} // namespace fusec

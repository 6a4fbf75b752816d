#pragma once

#include "Cost/Cost.h"
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// Makes counters of the barriers where the model says that they cost less and the rules allow it. `phases`: the work
/// of each phase, in which it is noted.
void chooseSignals(Schedule &schedule, const ExprProgram &pattern,
                   std::vector<cost::Counts> &phases, const Target &target);

} // namespace fusec::tiling

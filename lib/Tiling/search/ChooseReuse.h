#pragma once

#include "Tiling/search/PricedSchedule.h"

namespace fusec {

/// Sets `kept` to all that threads of this target can keep. `symbols`: as for lowerSchedule.
Status chooseReadReuse(Schedule &schedule, const ExprProgram &pattern,
                       const std::vector<Symbol> &symbols, const Target &target);

namespace tiling {

/// Decides what the threads of a schedule keep (schedule/ReadReuse.h), and weighs it with that.
Status chooseReadReuse(PricedSchedule &candidate, const ExprProgram &pattern, const Target &target);

/// Chooses the reuse of the fastest candidates (fastestOfUnits), and of those that become the fastest once these are
/// decided, but for those that are too slow whatever they reuse. `trustParts`: the threads of packs reuse what they
/// reuse as threads of their part alone.
Status chooseReuseOfFastest(PricedSchedules &all, const ExprProgram &pattern, const Target &target,
                            bool trustParts);

} // namespace tiling
} // namespace fusec

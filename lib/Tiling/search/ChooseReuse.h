#pragma once

#include "Tiling/counts/CountWork.h"
#include "Tiling/search/PricedCandidates.h"

namespace fusec {

/// Sets `kept` to all that threads of this target can keep. `symbols`: as for lowerSchedule.
Status chooseReadReuse(Schedule &schedule, const ExprProgram &pattern,
                       const std::vector<Symbol> &symbols, const Target &target);

namespace tiling {

/// The schedule with all held by its rounds that its blocks have room for while the target still holds all of them at
/// once; nothing where that is none, or where it does not even hold blocks that keep nothing. `meter`: of its program.
std::optional<Schedule> withPersistentReads(const Schedule &schedule, WorkMeter &meter,
                                            const Target &target);

/// Decides what the threads of a schedule keep (schedule/ReadReuse.h), and weighs it with that.
Status chooseReadReuse(PricedSchedule &candidate, const ExprProgram &pattern, const Target &target);

/// Decides it for the fastest ones (fastestOfUnits), and for those that are the fastest once these are decided, but for
/// those that are too slow whatever they keep. `trustParts`: the threads of packs keep what they keep as threads of
/// their part alone.
Status chooseReuseOfFastest(PricedSchedules &all, const ExprProgram &pattern, const Target &target,
                            bool trustParts);

} // namespace tiling
} // namespace fusec

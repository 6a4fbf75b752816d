#pragma once

#include "Tiling/schedule/BoundSchedule.h"
#include "Tiling/search/PricedCandidates.h"

namespace fusec::tiling {

/// Packs of programs whose equations fall into parts that do not need each other; none for others. What they count is
/// put together from their parts' own schedules.
Result<PricedSchedules> packCandidates(const ScheduledProgram &program, const Target &target,
                                       PartScheduleCache *known);

} // namespace fusec::tiling

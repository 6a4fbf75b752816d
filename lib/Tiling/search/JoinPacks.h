#pragma once

#include "Tiling/search/PartScheduleCache.h"

namespace fusec::tiling {

/// For patterns whose equations fall into parts that do not need each other; none for others. What they count is put
/// together from their parts' own schedules.
Result<Weighed> packCandidates(const ExprProgram &pattern, const Target &target, KnownParts *known);

} // namespace fusec::tiling

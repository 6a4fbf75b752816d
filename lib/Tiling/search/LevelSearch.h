#pragma once
#include "Tiling/counts/CountWork.h"
#include "Tiling/search/PricedCandidates.h"

#include <optional>

namespace fusec::tiling {

/// The schedule with its values inside the pattern at levels that make it faster. Each begins at the block's memory
/// where the generator has put it into device memory and the rules allow that, else where the generator has put it:
/// registers are the generators' alone to give, and only raised here. Nullopt where the levels that it has are as good.
/// `meter`: of what its alternatives make of the pattern; the schedule names none. A block's own memory is never asked
/// for more than it has.
std::optional<PricedSchedule> withFasterLevels(const PricedSchedule &start, const Target &target,
                                               WorkMeter &meter);

} // namespace fusec::tiling

#pragma once
#include "Tiling/Weighed.h"

#include <optional>

namespace fusec::tiling {

/// The schedule with its values inside the pattern at levels that make it faster: each at the lowest one that the rules
/// allow, or above it. Nullopt where the levels that it has are as good. `equations`: what its alternatives make of the
/// pattern; the schedule names none. A block's own memory is never asked for more than it has.
std::optional<WeighedSchedule> withFasterLevels(const WeighedSchedule &start,
                                                const ExprProgram &equations, const Target &target);

} // namespace fusec::tiling

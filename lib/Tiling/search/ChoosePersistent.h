#pragma once

#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// The schedule with all held by its rounds that its blocks have room for while the target still holds all of them at
/// once; nothing where that is none, or where it does not even hold blocks that keep nothing.
std::optional<Schedule> withPersistentReads(const Schedule &schedule, const ExprProgram &equations,
                                            const Target &target);

} // namespace fusec::tiling

#pragma once
#include "Tiling/candidates/Candidates.h"

namespace fusec::tiling {

/// Whether the program is one sum of products of which several outputs use a factor, and the map that finishes it, if
/// any.
bool isOneContraction(const ScheduledProgram &program);

/// Schedules of it: its tree in several shapes, and those of sums where these are no worse.
Candidates contractionCandidates(const ScheduledProgram &program, const Target &target);

} // namespace fusec::tiling

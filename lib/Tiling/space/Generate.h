#pragma once
// The schedules of patterns with several contractions: trees over the rows that all equations share.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Whether the equations are those of a tree: there are several contractions to put together.
bool hasSeveralContractions(const std::vector<const Equation *> &equations);

/// Trees of the program's loop space (Expr/LoopSpace.h). None where it has none, or fewer than two contractions.
std::vector<Schedule> treeCandidates(const ScheduledProgram &program, const Target &target);

/// One of treeCandidates. What alternatives, other levels and kept reads make of parts of one weighs little beside its
/// products, and searches ask for many.
inline bool isTree(const Schedule &schedule) { return schedule.name.starts_with("tree"); }

} // namespace fusec::tiling

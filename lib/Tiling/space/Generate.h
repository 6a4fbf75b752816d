#pragma once
// The schedules of contractions with what stands in front, between and behind them: trees over the rows that all
// equations share.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Whether a tree of the program's loop space (Expr/LoopSpace.h), contractions among its equations, puts together what
/// other generators do not: a sum with columns of its own hands something on to another nest, or takes something.
bool hasTree(const ScheduledProgram &program);

/// Its trees; none without.
std::vector<Schedule> treeCandidates(const ScheduledProgram &program, const Target &target);

/// One of treeCandidates. What alternatives, other levels and kept reads make of parts of one weighs little beside its
/// products, and searches ask for many.
inline bool isTree(const Schedule &schedule) { return schedule.name.starts_with("tree"); }

} // namespace fusec::tiling

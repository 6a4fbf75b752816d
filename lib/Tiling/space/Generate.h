#pragma once
// The schedules of contractions with what stands in front, between and behind them: trees over the rows that all
// equations share, or over the columns of a last one.
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Whether a tree of the program's loop space (Expr/LoopSpace.h), contractions among its equations or, on a GPU, a
/// matrix times one row, puts together what other generators do not: a sum with columns of its own takes something from
/// another nest, or other sums take it.
bool hasTree(const ScheduledProgram &program, const Target &target);

/// The program's trees, those of one contraction among them; none without.
std::vector<Schedule> treeCandidates(const ScheduledProgram &program, const Target &target);

/// Whether there are several contractions to put together. What alternatives and kept reads make of parts of their
/// trees weighs little beside the products.
bool hasSeveralContractions(const std::vector<const Equation *> &equations);

} // namespace fusec::tiling

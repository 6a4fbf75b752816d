#pragma once

// The phases of a kernel, and the parts that the blocks of a phase are of.

#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// The first equation of each phase of a schedule but the first one.
std::vector<int> phaseStarts(const Schedule &schedule);

/// One phase of a schedule as a schedule of its own.
struct PhasePart {
  ExprProgram pattern;
  Schedule schedule;
};
std::vector<PhasePart> partsOf(const Schedule &schedule, const ExprProgram &pattern);

/// Each phase of the schedule, those of a round in the place of the rounds, as the parts that its blocks are of.
std::vector<std::vector<std::span<const TreeNode>>> partsOfPhases(const Schedule &schedule);

/// Equations get other numbers: `offset` is added.
void shiftEquations(Schedule &schedule, int offset);

} // namespace fusec::tiling

#pragma once

// The phases of a kernel as schedules of their own.

#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// The first equation of each phase of a schedule but the first one.
std::vector<int> phaseStarts(const Schedule &schedule);

/// One phase of a schedule as a schedule of its own.
struct PhasePart {
  ExprProgram pattern;
  Schedule schedule;
};
std::vector<PhasePart> partsOf(const BoundSchedule &bound);

/// Equations get other numbers: `offset` is added.
void shiftEquations(Schedule &schedule, int offset);

} // namespace fusec::tiling

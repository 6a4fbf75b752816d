#pragma once

// The phases of a kernel as schedules of their own.

#include "Tiling/schedule/BoundSchedule.h"

#include <functional>

namespace fusec::tiling {

/// The first equation of each phase of a schedule but the first one.
std::vector<int> phaseStarts(const Schedule &schedule);

/// One phase of a schedule as a schedule of its own.
struct PhaseSchedule {
  ExprProgram pattern;
  Schedule schedule;
};
std::vector<PhaseSchedule> schedulesOfPhases(const BoundSchedule &bound);

/// Gives equations other numbers.
void renumberEquations(Schedule &schedule, const std::function<int(int)> &number);

} // namespace fusec::tiling

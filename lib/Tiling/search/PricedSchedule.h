#pragma once
#include "Cost/Cost.h"
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// A schedule and what it is predicted to take.
struct PricedSchedule {
  Schedule schedule;
  std::vector<cost::Counts> phases;
  double seconds = 0;
};
using PricedSchedules = std::vector<PricedSchedule>;

/// The fastest with each number of units, the first one on a tie: what a kernel, or a phase of one, is made of.
std::vector<PricedSchedule *> fastestOfUnits(PricedSchedules &all);

} // namespace fusec::tiling

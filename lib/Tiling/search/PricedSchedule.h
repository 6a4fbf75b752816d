#pragma once
#include "Cost/Cost.h"
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// A schedule and what it is predicted to take.
struct WeighedSchedule {
  Schedule schedule;
  std::vector<cost::Counts> phases;
  double seconds = 0;
};
using Weighed = std::vector<WeighedSchedule>;

/// The fastest with each number of units, the first one on a tie: what a kernel, or a phase of one, is made of.
std::vector<WeighedSchedule *> fastestOfUnits(Weighed &all);

} // namespace fusec::tiling

#pragma once
#include "Cost/Cost.h"
#include "Tiling/Schedule.h"

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

/// Decides what the threads of these keep (Kept.h), and weighs them with it, but for those that are too slow whatever
/// they keep. Where a kernel cannot be made of one, it goes, and the next fastest takes its place.
void keepInFastest(Weighed &all, const ExprProgram &pattern, const Target &target);

} // namespace fusec::tiling

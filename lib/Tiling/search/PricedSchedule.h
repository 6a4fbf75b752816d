#pragma once
#include "Cost/Cost.h"
#include "Support/Result.h"
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

/// Decides what the threads of a schedule keep (schedule/ReadReuse.h), and weighs it with that.
Status decideKept(WeighedSchedule &candidate, const ExprProgram &pattern, const Target &target);

/// The same of the fastest ones (fastestOfUnits), and of those that are the fastest once these are decided, but for
/// those that are too slow whatever they keep. `trustParts`: the threads of packs keep what they keep as threads of
/// their part alone.
Status keepInFastest(Weighed &all, const ExprProgram &pattern, const Target &target,
                     bool trustParts);

} // namespace fusec::tiling

#pragma once
#include "Cost/Cost.h"

#include <vector>

namespace fusec::cost {

/// Seconds of one launch of a kernel, and the counts of its phases, from which the cost of the same phases inside of
/// another kernel follows.
struct LaunchTime {
  double seconds = 0;
  std::vector<Counts> phases;
};

} // namespace fusec::cost

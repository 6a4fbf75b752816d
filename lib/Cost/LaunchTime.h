#pragma once
#include "Cost/Cost.h"

#include <vector>

namespace fusec::cost {

/// What one launch of a kernel takes. Its phases say what they take as phases of another kernel.
struct LaunchTime {
  double seconds = 0;
  std::vector<Counts> phases;
};

} // namespace fusec::cost

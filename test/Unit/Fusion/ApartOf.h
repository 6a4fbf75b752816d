#pragma once
#include "Fusion/Plan.h"

namespace fusec::test {

/// "from -> to: reason" of each value between launches.
inline std::vector<std::string> apartOf(const Plan &plan) {
  std::vector<std::string> lines;
  for (const CrossKernelValue &value : plan.crossKernelValues)
    lines.push_back(value.producer + " -> " + value.consumer + ": " + value.reason);
  return lines;
}

} // namespace fusec::test

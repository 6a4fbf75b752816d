#pragma once
#include "Fusion/Plan.h"

namespace fusec::test {

/// "from -> to: reason" of each value between launches.
inline std::vector<std::string> apartOf(const Plan &plan) {
  std::vector<std::string> lines;
  for (const Apart &apart : plan.apart)
    lines.push_back(apart.producer + " -> " + apart.consumer + ": " + apart.reason);
  return lines;
}

} // namespace fusec::test

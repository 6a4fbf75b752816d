#include "Tiling/search/PricedSchedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace fusec::tiling {

std::vector<WeighedSchedule *> fastestOfUnits(Weighed &all) {
  std::map<int, WeighedSchedule *> fastest;
  for (WeighedSchedule &candidate : all) {
    WeighedSchedule *&best = fastest[candidate.schedule.units];
    if (!best || candidate.seconds < best->seconds)
      best = &candidate;
  }
  std::vector<WeighedSchedule *> list;
  for (auto [units, candidate] : fastest)
    list.push_back(candidate);
  return list;
}

} // namespace fusec::tiling

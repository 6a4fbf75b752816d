#include "Tiling/search/PricedSchedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace fusec::tiling {

std::vector<PricedSchedule *> fastestOfUnits(PricedSchedules &all) {
  std::map<int, PricedSchedule *> fastest;
  for (PricedSchedule &candidate : all) {
    PricedSchedule *&best = fastest[candidate.schedule.units];
    if (!best || candidate.seconds < best->seconds)
      best = &candidate;
  }
  std::vector<PricedSchedule *> list;
  for (auto [units, candidate] : fastest)
    list.push_back(candidate);
  return list;
}

} // namespace fusec::tiling

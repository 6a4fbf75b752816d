#include "Tiling/Weighed.h"

#include "Tiling/Kept.h"
#include "Tiling/Oracle.h"

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

/// Whatever its threads keep: nothing but arithmetic, and each byte once.
static double leastSeconds(const WeighedSchedule &candidate, const Target &target) {
  std::vector<cost::Counts> phases = candidate.phases;
  for (cost::Counts &phase : phases) {
    phase.vectorLoads = phase.gathers = 0;
    phase.levelBytes = {};
  }
  return cost::latency(phases, target);
}

void keepInFastest(Weighed &all, const ExprProgram &pattern, const Target &target) {
  // What a phase saves at both of its ends may make up for units that are slower alone.
  const double chance = cost::joinsPhases(target) ? 2 * target.launchSec : 0;
  std::set<int> done; // numbers of units
  double least = std::numeric_limits<double>::infinity();
  while (!all.empty()) {
    WeighedSchedule *next = nullptr;
    for (WeighedSchedule *candidate : fastestOfUnits(all))
      if (done.count(candidate->schedule.units) == 0 &&
          (!next || candidate->seconds < next->seconds))
        next = candidate;
    if (!next)
      return;
    Schedule &schedule = next->schedule;
    if (leastSeconds(*next, target) > least + chance) {
      done.insert(schedule.units);
      continue;
    }
    if (!decideKept(schedule, pattern, pattern.symbols, target)) {
      all.erase(all.begin() + (next - all.data()));
      continue;
    }
    done.insert(schedule.units);
    if (!schedule.kept.empty()) {
      next->phases = countWork(schedule, pattern, target);
      next->seconds = cost::latency(next->phases, target);
    }
    least = std::min(least, next->seconds);
  }
}

} // namespace fusec::tiling

#include "Tiling/search/PricedSchedule.h"

#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/search/BestSchedules.h"

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
    phase.vectorLoads = phase.stagedLoads = phase.gathers = 0;
    phase.levelBytes = {};
  }
  return cost::latency(phases, target);
}

Status decideKept(WeighedSchedule &candidate, const ExprProgram &pattern, const Target &target) {
  const std::vector<Kept> before = candidate.schedule.kept;
  FUSEC_CHECK(fusec::decideKept(candidate.schedule, pattern, pattern.symbols, target));
  // What rounds hold comes first: all blocks are to stay resident.
  if (holdsValues(candidate.schedule) &&
      !isResident(candidate.schedule, ScheduledPattern(candidate.schedule, pattern).program(),
                  target))
    candidate.schedule.kept = before;
  if (candidate.schedule.kept == before)
    return success();
  candidate.phases = countWork(candidate.schedule, pattern, target);
  candidate.seconds = cost::latency(candidate.phases, target);
  return success();
}

Status keepInFastest(Weighed &all, const ExprProgram &pattern, const Target &target,
                     bool trustParts) {
  // What a phase saves at both of its ends may make up for units that are slower alone.
  const double chance = cost::joinsPhases(target) ? 2 * target.launchSec : 0;
  // Where the threads of a pack keep less than those of its parts, another one of as many units is the fastest.
  std::set<const WeighedSchedule *> done;
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    WeighedSchedule *next = nullptr;
    for (WeighedSchedule *candidate : fastestOfUnits(all))
      if (done.count(candidate) == 0 && (!next || candidate->seconds < next->seconds))
        next = candidate;
    if (!next)
      return success();
    done.insert(next);
    if (leastSeconds(*next, target) > least + chance)
      continue;
    if (!trustParts || !isPack(next->schedule.tree))
      FUSEC_CHECK(decideKept(*next, pattern, target));
    least = std::min(least, next->seconds);
  }
}

} // namespace fusec::tiling

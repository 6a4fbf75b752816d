#include "Tiling/search/PricedCandidates.h"

#include "Tiling/candidates/Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/search/ChooseReuse.h"
#include "Tiling/search/JoinPacks.h"
#include "Tiling/search/LevelSearch.h"
#include "Tiling/search/NameKernels.h"
#include "Tiling/search/PhaseCandidates.h"
#include "Tiling/space/Generate.h"
#include "Tiling/space/OneContraction.h"

#include <algorithm>

namespace fusec::tiling {

PricedSchedule priced(Schedule schedule, std::vector<cost::Counts> phases, const Target &target) {
  const double seconds = cost::latency(phases, target);
  return {std::move(schedule), std::move(phases), seconds};
}

PricedSchedule priced(Schedule schedule, WorkMeter &meter, const Target &target) {
  nameKernels(schedule, meter.program(), target);
  std::vector<cost::Counts> phases = meter.phases(schedule);
  return priced(std::move(schedule), std::move(phases), target);
}

static void append(PricedSchedules &list, PricedSchedules more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

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

Result<PricedSchedules> ownCandidates(const ExprProgram &pattern, const Target &target,
                                      PartScheduleCache *known) {
  // Parts that do not need each other gain nothing from being one block's work.
  const ScheduledProgram program(pattern);
  FUSEC_TRY(PricedSchedules out, packCandidates(program, target, known));
  if (!out.empty())
    return out;
  WorkMeter meter(program, target);
  std::vector<Schedule> plain = plainCandidates(program, target, meter);
  const bool isTree = plain.empty() && !isOneContraction(program);
  std::ranges::move(treeCandidates(program, target), std::back_inserter(plain));
  for (Schedule &schedule : plain) {
    if (hasTooManyAxes(schedule, target))
      continue;
    std::optional<Schedule> holding =
        hasGridScan(schedule) ? withPersistentReads(schedule, meter, target) : std::nullopt;
    out.push_back(priced(std::move(schedule), meter, target));
    if (holding)
      out.push_back(priced(std::move(*holding), meter, target));
  }
  for (PricedSchedule &candidate : out)
    candidate.isTree = isTree;
  if (isTree)
    return out;
  PricedSchedules raised;
  for (const PricedSchedule *candidate : fastestOfUnits(out))
    if (std::optional<PricedSchedule> best = withFasterLevels(*candidate, target, meter)) {
      best->schedule.name += "-raised";
      raised.push_back(std::move(*best));
    }
  append(out, std::move(raised));
  return out;
}

/// Adds schedules of the pattern, which an alternative has made behind those of `via`, and of what others make of it.
static Status addRewritten(const RewrittenPattern &pattern, std::vector<Rewrite> via,
                           const Target &target, PartScheduleCache *known, PricedSchedules &all) {
  via.push_back(pattern.rewrite);
  FUSEC_TRY(PricedSchedules own, ownCandidates(pattern.program, target, known));
  if (!pattern.phaseStarts.empty()) {
    FUSEC_TRY(PricedSchedules phased, joinedPhases(pattern.program, target, pattern.phaseStarts,
                                                   [&](const ExprProgram &part) {
                                                     return ownCandidates(part, target, known);
                                                   }));
    append(own, std::move(phased));
  }
  for (PricedSchedule &candidate : own)
    candidate.schedule.via = via;
  append(all, std::move(own));
  for (const RewrittenPattern &next : alternativesBehind(pattern, target))
    FUSEC_CHECK(addRewritten(next, via, target, known, all));
  return success();
}

Result<PricedSchedules> pricedCandidates(const ExprProgram &pattern, const Target &target,
                                         PartScheduleCache *known, bool thorough) {
  FUSEC_TRY(PricedSchedules all, ownCandidates(pattern, target, known));
  if (!all.empty() && !thorough)
    return all;
  const bool isChain = !all.empty() && all.front().isTree &&
                       hasSeveralContractions(ScheduledProgram(pattern).equations);
  for (const RewrittenPattern &other : applicableAlternatives(pattern, target))
    if (!isChain || other.rewrite.alternative == "defer-division")
      FUSEC_CHECK(addRewritten(other, {}, target, known, all));
  return all;
}

} // namespace fusec::tiling

#include "Driver/PatternOracle.h"

namespace fusec {

Result<std::vector<ScheduleVariant>> PatternOracle::ask(const Pattern &pattern,
                                                        const std::vector<int> &phases,
                                                        const ScheduleSearch &how) {
  // Phases of the pattern's own choice are no part of the question; alwaysHolds speaks of given ones alone.
  const bool isKeepable = phases.empty() && how.thorough && how.blocksWait == mode.blocksWait &&
                          how.bytesAlone == mode.bytesAlone;
  if (auto it = kept.find(pattern.signature); isKeepable && it != kept.end())
    return it->second;
  ++searched;
  const int64_t lookups = parts.lookups;
  FUSEC_TRY(std::vector<ScheduleVariant> found,
            bestSchedules(pattern.program, target, phases, how));
  if (isKeepable && parts.lookups == lookups)
    keep(pattern.signature, found);
  return found;
}

void PatternOracle::keep(const Hash128 &signature, std::vector<ScheduleVariant> variants) {
  if (!kept.insert_or_assign(signature, std::move(variants)).second)
    return;
  order.push_back(signature);
  if (order.size() > kMostKept) {
    kept.erase(order.front());
    order.pop_front();
  }
}

void PatternOracle::learnFrom(const PatternOracle &other) {
  for (const Hash128 &signature : other.order)
    keep(signature, other.kept.at(signature));
}

Result<KernelTime> PatternOracle::time(const Pattern &pattern) {
  if (auto it = times.find(pattern.signature); it != times.end())
    return it->second;
  int64_t equations = 0;
  for (const Item &item : pattern.program.items)
    equations += equationsWeighed(std::get<Equation>(item.value));
  const bool isThorough = thorough.takeWork(equations);
  cursory += !isThorough;
  FUSEC_TRY(std::vector<ScheduleVariant> found, ask(pattern, {},
                                                    {.known = &parts,
                                                     .blocksWait = mode.blocksWait,
                                                     .thorough = isThorough,
                                                     .bytesAlone = mode.bytesAlone}));
  KernelTime &time = times[pattern.signature];
  if (!found.empty()) {
    ScheduleVariant &best = found.back();
    time = {best.seconds, std::move(best.ofUnits), best.bytes};
  }
  return time;
}

Result<SizedSchedules> PatternOracle::schedules(const Pattern &pattern) {
  const ScheduleSearch how{.blocksWait = mode.blocksWait,
                           .alwaysHolds = mode.alwaysHolds,
                           .bytesAlone = mode.bytesAlone};
  return schedulesBySize(pattern.program, target,
                         [&](const ExprProgram &sized) -> Result<std::vector<ScheduleVariant>> {
                           if (&sized == &pattern.program)
                             return ask(pattern, pattern.phaseStarts, how);
                           return bestSchedules(sized, target, pattern.phaseStarts, how);
                         });
}

Result<double> PatternOracle::secondsAt(const Pattern &pattern,
                                        const std::vector<int64_t> &symbols) {
  FUSEC_TRY(const SizedSchedules all, schedules(pattern));
  return secondsOfFastest(all, pattern.program, symbols, target);
}

Result<std::vector<ScheduleVariant>> PatternOracle::unrestrictedSchedules(const Pattern &pattern) {
  return ask(pattern, {}, {});
}

} // namespace fusec

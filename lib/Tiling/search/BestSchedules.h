#pragma once
#include "Cost/LaunchTime.h"
#include "Search/Choose.h"
#include "Support/Guard.h"
#include "Support/Result.h"
#include "Target/Target.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/search/PricedCandidates.h"

#include <map>
#include <optional>

namespace fusec {

/// A pattern's schedule for some values of the symbols: of its variants the first whose guards hold runs. The last one
/// has no guards.
struct ScheduleVariant {
  std::vector<Guard> guards;
  Schedule schedule;
  double seconds = 0;                              // predicted, at the symbols' opt values
  double bytes = 0;                                // of device memory, as Prediction has them
  std::map<int, cost::LaunchTime> ofUnits;         // the fastest with so many units a block
  search::Log considered;                          // candidates and their predicted seconds
  std::vector<std::vector<Rewrite>> consideredVia; // of each candidate, as its name tells them
  /// Where phases were given: the candidates of each, as a kernel of its own; chosen is what this kernel runs.
  std::vector<search::Log> consideredOfPhases;
};

/// The symbol where it is a multiple of `divisor` too, with the nearest such `opt`; nullopt where no value is.
std::optional<Symbol> multiplesOf(Symbol symbol, int64_t divisor);
/// What is known of the symbols where the variant's guards hold: of which numbers they are multiples, and what its
/// schedule takes them to be at most.
std::vector<Symbol> guardedSymbols(const ScheduleVariant &variant, std::vector<Symbol> symbols);

struct ScheduleSearch {
  /// Lives from call to call on the target: the threads of a pack are then taken to keep what those of its parts do.
  PartScheduleCache *known = nullptr;
  /// A kernel's blocks may wait for each other, between phases and between rounds of a scan.
  bool blocksWait = true;
  /// If false, a kernel is weighed in a quarter of the time and may seem slower than it is: without alternatives, where
  /// the pattern has schedules as it is, and with threads that keep nothing.
  bool thorough = true;
  /// Where phases are given and schedules hold what others read again (schedule/PersistentReads.h), they alone are
  /// candidates.
  bool alwaysHolds = false;
  /// Where candidates are trees of several nests, those alone whose bytes take the least time: the analytical
  /// model of Chimera (chimera.txt, section 4), in which arithmetic weighs nothing.
  bool bytesAlone = false;
};

/// Answers "how would this pattern run, and how fast" for Fusion: the cheapest candidate, and a guarded variant in
/// front of it where knowing that a symbol is a multiple of the lanes saves bounds checks. Schedules say what threads
/// keep, and the seconds know it: they are those of the kernel that is made. Empty where no single kernel can hold the
/// pattern. `phaseStarts`: see tiling::phasedCandidates.
Result<std::vector<ScheduleVariant>> bestSchedules(const ExprProgram &pattern, const Target &target,
                                                   const std::vector<int> &phaseStarts = {},
                                                   const ScheduleSearch &how = {});

} // namespace fusec

#pragma once
#include "Fusion/Plan.h"
#include "Search/Budget.h"
#include "Tiling/search/SizeVariants.h"

#include <deque>
#include <map>

namespace fusec {

/// Answers how a pattern would run on one target, and how fast: for Fusion's search, for the schedules of its plan, and
/// for plans to compare with. A question that was asked before, with the same flags, phases and thoroughness, is
/// answered from memory.
class PatternOracle {
public:
  PatternOracle(const Target &target, const PlanOptions &options)
      : target(target), mode(infoOf(options.mode)), thorough(options.limits.thoroughlyWeighed) {}

  /// Time of the fastest schedule, for the search; thorough while the budget lasts. No schedule: `KernelTime` is empty.
  Result<KernelTime> time(const Pattern &pattern);
  /// What a pattern of the plan may run as, in its phases, as the mode has it; thorough in any case.
  Result<SizedSchedules> schedules(const Pattern &pattern);
  /// Seconds of such kernels at these values of the symbols, with the best of these schedules.
  Result<double> secondsAt(const Pattern &pattern, const std::vector<int64_t> &symbols);
  /// Remembers what `other`, an oracle of the same target and mode, was asked for.
  void learnFrom(const PatternOracle &other);
  /// The schedules of a pattern with everything that Tiling knows, whatever the mode.
  Result<std::vector<ScheduleVariant>> unrestrictedSchedules(const Pattern &pattern);

  int64_t thoroughEquations() const { return thorough.spent(); } // of the patterns so far
  int64_t cursoryAnswers() const { return cursory; }             // behind the budget's end
  /// Questions that were not answered from memory, those for further sizes of a pattern aside.
  int64_t searches() const { return searched; }

private:
  /// Schedules are long, with all that was considered: the latest ones are kept.
  static constexpr size_t kMostKept = 1024;

  Result<std::vector<ScheduleVariant>> ask(const Pattern &pattern, const std::vector<int> &phases,
                                           const ScheduleSearch &how);
  void keep(const Hash128 &signature, std::vector<ScheduleVariant> variants);

  Target target;
  const SearchModeInfo &mode;
  search::Budget thorough;
  int64_t cursory = 0, searched = 0;
  PartScheduleCache parts;
  std::map<Hash128, KernelTime> times;
  /// Thorough answers without given phases, with the mode's other flags, that no parts of packs went into.
  std::map<Hash128, std::vector<ScheduleVariant>> kept;
  std::deque<Hash128> order; // of `kept`, the oldest first
};

} // namespace fusec

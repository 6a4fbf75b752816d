#pragma once
// The schedules that Tiling knows for a pattern, with what the model says of them.
#include "Cost/Cost.h"
#include "Support/Hash.h"
#include "Tiling/schedule/Schedule.h"

#include <map>
#include <memory>

namespace fusec {
class WorkMeter;

namespace tiling {

/// A schedule and what it is predicted to take.
struct PricedSchedule {
  Schedule schedule;
  std::vector<cost::Counts> phases;
  double seconds = 0;
  /// A tree that no other generator has an alternative to: several nests, a contraction among them. The levels of its
  /// values are chosen.
  bool isTree = false;
};
using PricedSchedules = std::vector<PricedSchedule>;
/// A schedule whose phases count so much.
PricedSchedule priced(Schedule schedule, std::vector<cost::Counts> phases, const Target &target);
/// A schedule as the meter of its program counts it, with its micro-kernels named.
PricedSchedule priced(Schedule schedule, WorkMeter &meter, const Target &target);

} // namespace tiling

/// Schedules of a part of packs (JoinPacks.cpp) as kernels of their own.
struct PartSchedules {
  ExprProgram part;           // the first one met: the schedules number its equations and tensors
  std::vector<TensorId> made; // its values
  tiling::PricedSchedules schedules;
  /// Schedules that packs have been made of, with what their threads keep.
  std::map<size_t, tiling::PricedSchedule> keeping;
};
/// What is kept from pattern to pattern of one target: the same parts come back in many packs.
struct PartScheduleCache {
  std::map<Hash128, std::shared_ptr<PartSchedules>> parts;
  int64_t lookups =
      0; // questions that it was asked: what was found without any does not depend on it
};

namespace tiling {

/// The fastest with each number of units, the first one on a tie: what a kernel, or a phase of one, is made of.
std::vector<PricedSchedule *> fastestOfUnits(PricedSchedules &all);

/// The pattern's own schedules, none of its alternatives': packs where it falls into parts, else the plain ones
/// and what other levels of their values make of the fastest.
Result<PricedSchedules> ownCandidates(const ExprProgram &pattern, const Target &target,
                                      PartScheduleCache *known = nullptr);

/// The candidates for a pattern, and those of its alternatives: all where that is `thorough`, else where it has none
/// as it is.
Result<PricedSchedules> pricedCandidates(const ExprProgram &pattern, const Target &target,
                                         PartScheduleCache *known = nullptr, bool thorough = true);

} // namespace tiling
} // namespace fusec

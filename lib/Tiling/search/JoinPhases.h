#pragma once
// Kernels of several phases: parts whose blocks need what all blocks of an earlier part have made. Between them stands
// a device-wide barrier (Souffle's grid synchronisation, section 6.4); on a CPU it is the end of a phase.
#include "Tiling/search/PartScheduleCache.h"

#include <functional>

namespace fusec::tiling {

/// The pattern's own schedules, none of its alternatives': packs where it falls into parts, else the plain ones
/// and what other levels of their values make of the fastest.
Result<PricedSchedules> ownCandidates(const ExprProgram &pattern, const Target &target,
                                      PartScheduleCache *known = nullptr);

/// The candidates for a pattern, and those of its alternatives: all where that is `thorough`, else where it has none
/// as it is.
Result<PricedSchedules> pricedCandidates(const ExprProgram &pattern, const Target &target,
                                         PartScheduleCache *known = nullptr, bool thorough = true);

/// Schedules of the pattern whose phases begin at the equations `phaseStarts` (ascending, without 0): one for each
/// number of units that every phase has candidates for, with the cheapest candidate of each phase, alternatives of its
/// own equations among them. Values that cross a barrier stay in device memory. `see` gets all candidates of each
/// phase, in order.
Result<PricedSchedules>
phasedCandidates(const ExprProgram &pattern, const Target &target,
                 const std::vector<int> &phaseStarts, PartScheduleCache *known = nullptr,
                 const std::function<void(const PricedSchedules &)> &see = {});

} // namespace fusec::tiling

#pragma once
// Kernels of several phases: parts whose blocks need what all blocks of an earlier part have made. Between them stands
// a device-wide barrier (Souffle's grid synchronisation, section 6.4); on a CPU it is the end of a phase.
#include "Tiling/search/PricedCandidates.h"

#include <functional>

namespace fusec::tiling {

using CandidatesOf = std::function<Result<PricedSchedules>(const ExprProgram &)>;

/// Schedules of the pattern whose phases begin at the equations `phaseStarts` (ascending, without 0): one for each
/// number of units that every phase has candidates for, with the cheapest of the candidates that each phase is given.
Result<PricedSchedules> joinedPhases(const ExprProgram &pattern, const Target &target,
                                     const std::vector<int> &phaseStarts,
                                     const CandidatesOf &candidatesOf);

/// Joins the candidates that each phase has as a pattern of its own, alternatives of its equations among
/// them. Values that cross a barrier stay in device memory. `see` gets all candidates of each phase, in order.
Result<PricedSchedules>
phasedCandidates(const ExprProgram &pattern, const Target &target,
                 const std::vector<int> &phaseStarts, PartScheduleCache *known = nullptr,
                 const std::function<void(const PricedSchedules &)> &see = {});

} // namespace fusec::tiling

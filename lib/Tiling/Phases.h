#pragma once
// Kernels of several phases: parts whose blocks need what all blocks of an earlier part have made. Between them stands
// a device-wide barrier (Souffle's grid synchronisation, section 6.4); on a CPU it is the end of a phase.
#include "Cost/Cost.h"
#include "Tiling/Builder.h"

namespace fusec::tiling {

/// Equations first..last-1 of the pattern as a pattern of their own, which keeps the numbers of the tensors: what an
/// earlier phase made is an input, what a later one reads is an output.
ExprProgram phasePattern(const ExprProgram &pattern, int first, int last);

/// Schedules of the pattern whose phases begin at the equations `phaseStarts` (ascending, without 0): one for each
/// number of units that every phase has candidates for, with the cheapest candidate of each phase. Values that cross a
/// barrier stay in device memory.
Candidates phasedCandidates(const ExprProgram &pattern, const Target &target,
                            const std::vector<int> &phaseStarts, KnownParts *known = nullptr);

/// The first equation of each phase of a schedule but the first one.
std::vector<int> phaseStarts(const Schedule &schedule);

/// One phase of a schedule as a schedule of its own.
struct PhasePart {
  ExprProgram pattern;
  Schedule schedule;
};
std::vector<PhasePart> partsOf(const Schedule &schedule, const ExprProgram &pattern);

} // namespace fusec::tiling

#pragma once

// The generators of candidate schedules.

#include "Tiling/candidates/ScheduleBuilder.h"

namespace fusec {
class WorkMeter;
}

namespace fusec::tiling {

using Candidates = std::vector<Schedule>;
/// Whether the program is a reduction and a map that takes its result on from registers.
bool isFinishedReduction(const ScheduledProgram &program);
/// Schedules of the program, packs and contractions apart. `meter`: of the program.
Candidates plainCandidates(const ScheduledProgram &program, const Target &target,
                           const WorkMeter &meter);
Candidates mapCandidates(const View &view);
Candidates reductionCandidates(const View &view);
Candidates scanCandidates(const ScheduledProgram &program, const Target &target);
/// None where an equation of a step cannot be spread over blocks.
Candidates gridScanCandidates(const ScheduledProgram &program, const Target &target);
Candidates scatterCandidates(const View &view);
Candidates topKCandidates(const View &view);
/// None where an equation is neither a map nor a reduction, or has no elements, or (on a GPU, without common rows) more
/// outputs than one block is for.
Candidates stitchCandidates(const ScheduledProgram &program, const Target &target,
                            const WorkMeter &meter);
/// On a CPU: windows of few taps over padded rows that a tile holds whole, their lanes along the row: where padding
/// begins is known for each lane and tap. None where that is not so.
Candidates windowCandidates(const View &view);
/// On a GPU: a lane for each sum, along the last axis that is kept, straight from where the operands lie.
Candidates columnCandidates(const View &view);

} // namespace fusec::tiling

#pragma once
#include "Tiling/counts/SectorCounter.h"
#include "Tiling/schedule/LiveReads.h"
#include "Tiling/schedule/StagedTile.h"

namespace fusec::tiling {

struct StagedCopy {
  AccessCount read;
  double sharedBytes = 0; // written
};

/// What a Stage statement asks of memory: the threads of a block copy a tile side by side, along the digit that is
/// contiguous in the tensor; what lies beyond the tensor is not read. `reads`: those of the operand's value; `facts`:
/// its equation's.
StagedCopy countStagedCopy(const Schedule &schedule, const ExprProgram &pattern,
                           const EquationFacts &facts, const Operand &operand,
                           const std::vector<GuardedRead> &reads, const LoopRanges &loops,
                           const std::vector<int64_t> &symbols, bool lanesAreThreads,
                           Effort effort);

} // namespace fusec::tiling

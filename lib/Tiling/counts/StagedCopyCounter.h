#pragma once
#include "Tiling/counts/SectorCounter.h"
#include "Tiling/schedule/StagedTile.h"

namespace fusec::tiling {

/// A read that a statement makes where all of `guards` hold, its own predicate among them.
struct GuardedRead {
  NodeId read;
  std::vector<NodeId> guards;
};

struct StagedCopy {
  AccessCount read;
  double sharedBytes = 0; // written
};

/// What a Stage statement asks of memory: the threads of a block copy a tile side by side, along the digit that is
/// contiguous in the tensor; what lies beyond the tensor is not read. `reads`: those of the operand's value.
StagedCopy countStagedCopy(const AccessContext &context, const Operand &operand,
                           const std::vector<GuardedRead> &reads, const LoopRanges &loops);

} // namespace fusec::tiling

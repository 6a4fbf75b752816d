#pragma once
#include "Target/Target.h"
#include "Tiling/BlockStorage.h"

namespace fusec::tiling {

/// A schedule's axes at most: sets of them are kept as bits.
constexpr size_t kMostAxes = 64;

/// Bytes of one launch that this cache of a CPU does not hold when they are asked for, and that come from the level
/// behind it. None where it holds everything that a core touches: the steps around have left it there
/// (cost::heldShare).
double missedBytes(const Schedule &schedule, const ExprProgram &pattern,
                   const BlockStorage &storage, const MemoryLevel &cache, double blocks, int cores);

} // namespace fusec::tiling

#pragma once
// Tiles that are kept on chip together.
#include "Tiling/space/Place.h"

namespace fusec::tiling {

/// Fills in the lives of a placement that has its statements. A map that alone reads a value, point by point, writes
/// its own over it.
void addLives(Placement &placement, const SpaceOperands &operands);

} // namespace fusec::tiling

#pragma once
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Elements of its axis that are computed at a time where the tile that `loop` steps over is cut at the extent; 0: all
/// of the tile, and what lies beyond the extent is not stored.
///
/// Of an extent that is known a tile is chosen which wastes little. Any number of elements may be left of a symbolic
/// one. A register tile of sums, of elements or of vectors in lanes, is then done in halves, of which the second is
/// left out where it has nothing to do, if a half is sums enough for a core that waits for none of them. Sums of a few
/// terms, a window's, wait for nothing: of those in lanes a vector is done at a time.
int64_t pieceOfCutTile(const BoundSchedule &bound, const LoopNode &loop);

} // namespace fusec::tiling

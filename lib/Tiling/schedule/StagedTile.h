#pragma once
// The tiles of operands that Stage statements copy, and of edges, for the generators, the cost model and the lowering.
#include "Tiling/schedule/BoundSchedule.h"

#include <functional>

namespace fusec::tiling {

/// Elements of a schedule axis below the loops around a statement; 0: no constant.
using TileOf = std::function<int64_t(AxisId)>;

/// Values that one axis of an equation takes while a fused axis, made of `positions`, runs through a tile.
struct PositionTile {
  int64_t size = 1;
  bool fromZero = false; // the tile may begin anywhere in the axis and go round: all of it is taken
};

/// For tiles that begin at multiples of `tile`. nullopt where an extent that matters is symbolic.
std::optional<PositionTile> positionTile(const Equation &equation,
                                         const std::vector<int> &positions, int position,
                                         int64_t tile);

/// Extents of a Shared operand's buffer, one a digit; 0 where there is no constant size. An index digit spans every
/// value of the index expression over the tile: the buffer is the smallest box that holds what is read.
std::vector<int64_t> stagedExtents(const Schedule &schedule, const Equation &equation,
                                   const Operand &operand, const TileOf &tileOf);

/// The extents inside these loops at the symbols' opt values.
std::vector<int64_t> stagedExtents(const BoundSchedule &bound, const Operand &operand,
                                   const Loops &loops);

/// The order in which a Stage's lanes go through a tile: digits, the fastest first. That is one that lies side by side
/// in memory, else the innermost of several elements; the others follow from the inside out. `extents`: stagedExtents.
struct CopyOrder {
  std::vector<size_t> digits;
  bool sideBySide = false; // the fastest one
};
CopyOrder copyOrder(const BoundSchedule &bound, const Operand &operand,
                    const std::vector<int64_t> &extents);

/// The loops that the statement which makes a value (its Store, else its Compute) and all that read it have in common,
/// down to those over units or lanes, which share it: a Shared edge holds a tile below them. nullopt where nothing
/// makes it.
std::optional<Loops> loopsOfEdge(const BoundSchedule &bound, TensorId tensor);

/// Elements between neighbours along an axis of the equation in a Shared operand's buffer; nullopt where they are at no
/// constant distance.
std::optional<int64_t> stagedStride(const BoundSchedule &bound, const Operand &operand,
                                    const std::vector<int64_t> &extents, int position);

} // namespace fusec::tiling

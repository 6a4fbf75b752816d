#pragma once
// Finds the equations of a tree that share their loops inside the rows.
#include "Expr/LoopSpace.h"

namespace fusec::tiling {

/// Equations that run in one nest of loops inside the rows, in this order.
struct SpaceNest {
  std::vector<int> equations;
  /// Loops of the space beside the rows, outermost first: those that the nest's values have, and those that it sums.
  std::vector<int> spatial, reduced;
  /// Its first equation sums for each point of the spatial loops, in register tiles; maps behind it take the values
  /// from there. Else all walk the loops point by point.
  bool tiled = false;
};

/// Nests in the order in which they run. A map joins the tile of a reduction that has its loops and whose values it
/// reads at its own point; maps, and sums to one value a row, join what walks the same loops, as long as everything
/// that they read is there: made by an earlier nest, or by a map of the same nest at the same point.
std::vector<SpaceNest> spaceNests(const LoopSpace &space);

} // namespace fusec::tiling

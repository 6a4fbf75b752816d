#pragma once
// Finds the equations of a stitched pattern that share their loops inside a row.
#include "Tiling/schedule/Schedule.h"

namespace fusec::tiling {

/// Equations that run in one loop nest, element by element, in this order.
struct FusedNest {
  std::vector<int> equations;
  /// Their axis positions beside the rows and those of extent 1, outermost first: all of a map's, all of a sum's. Equal
  /// extents, position for position.
  std::vector<std::vector<int>> dims;
  /// Neither a map nor a reduction to one value a row: a nest for itself, with accumulators along its spatial axes.
  bool columns = false;
};

/// Nests in the order in which they run. An equation joins the first nest of its extents in which everything that it
/// reads of the pattern is there: made by an earlier nest, or by a map of the same nest at the same point. So the sum
/// over e^x runs in the loop that makes e^x, and a row's mean stands between two nests.
std::vector<FusedNest> makeNests(const std::vector<const Equation *> &equations,
                                 const std::vector<int> &rowPositions);

} // namespace fusec::tiling

#pragma once
#include "Tiling/candidates/ScheduleBuilder.h"

#include <vector>

namespace fusec::tiling {

/// How the threads of a GPU's block share one to eight rows times a matrix, of which nothing is used twice but by the
/// rows of one thread (space/ThinTrees.cpp).
struct ThinTile {
  int units = 1;           // of a block
  int64_t neighbours = 1;  // elements of the matrix side by side in a thread
  int64_t terms = 1;       // of the sum, so many neighbours each, that it reads at once
  int64_t operands = 1;    // that each of the terms has in registers
  int64_t columns = 1;     // of a unit whose lanes share their sums
  bool wholeBlock = false; // shares them
};

/// Tiles of a matrix with columns side by side: lanes have neighbouring ones each, and all units of a block share the
/// sums. None where the view's contraction has no such matrix, a small one, or more rows.
std::vector<ThinTile> thinTiles(const View &view);

/// Tiles of a matrix with its terms side by side: lanes have neighbouring ones each, and a unit has a column or a few,
/// or the block has one.
std::vector<ThinTile> thinRowTiles(const View &view);

} // namespace fusec::tiling

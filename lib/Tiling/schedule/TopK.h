#pragma once
// The rows that topk sorts, or selects from by tiles.
#include "Tiling/schedule/Schedule.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

/// Longest row that is sorted or selected from by tiles as a whole: longer ones are sorted by no block's memory.
constexpr int64_t kMaxSorted = int64_t{1} << 16;

/// Number of places that sorting `length` elements takes: a power of two. nullopt without a bound on the length, or
/// where it is above kMaxSorted.
inline std::optional<int64_t> paddedLength(const DimExpr &length,
                                           const std::vector<Symbol> &symbols) {
  int64_t most = length.range(symbols).max;
  if (most > kMaxSorted)
    return std::nullopt;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(most, 1))));
}

/// Elements of a row that one lane searches for the first of its tile, such that a row has about as many vectors of
/// tiles as a tile has elements: each place that is found takes a pass over the ones and over one of the others.
inline int64_t rowsOfTile(int64_t padded, int64_t lanes) {
  int64_t rows = 1;
  while (rows * rows * lanes < padded)
    rows *= 2;
  return rows;
}

// A bitonic network merges runs of 1, 2, 4 places and so on. A row whose length is a run's own ends with the merge that
// holds all of it, and each merge is of the runs that begin in front of its end:
//
//   5 elements of 16 places, 4 threads: 16 are filled; 4 pairs are compared in rounds that merge runs of 1, 2 and 4
//
// So that threads need not ask which pairs there are, it is a multiple of what they compare at once.

/// Places from the row's first on that are filled in front of the first merge. `width`: threads of the block.
inline DimExpr filledPlaces(const DimExpr &length, int64_t padded, int64_t width) {
  if (length.isConst())
    return padded;
  const DimExpr step(std::min(padded, 2 * width));
  return ceilDiv(min(length * DimExpr(2), DimExpr(padded)), step) * step;
}

/// Pairs that a round compares which merges runs of half of `size` places to runs of so many.
inline DimExpr pairsMerged(const DimExpr &length, int64_t size, int64_t padded, int64_t width) {
  if (length.isConst())
    return padded / 2;
  const int64_t step = std::min(padded, std::max(size, 2 * width));
  return ceilDiv(length, DimExpr(step)) * DimExpr(step / 2);
}

/// Whether a row of that length takes this merge.
inline bool takesMerge(int64_t length, int64_t size) { return length > size / 2; }

} // namespace fusec::tiling

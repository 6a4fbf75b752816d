#pragma once
// The rows that topk sorts.
#include "Tiling/schedule/Schedule.h"

#include <algorithm>
#include <bit>

namespace fusec::tiling {

/// Longest row that is sorted as a whole: longer ones fit no block's shared memory.
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

} // namespace fusec::tiling

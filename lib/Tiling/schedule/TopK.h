#pragma once
// What the schedules of topk have in common with their lowering. Internal to Tiling.
#include "Cost/Cost.h"
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

/// Adds what a statement of topk costs that is done `times` times by each unit; `loops` are those around it.
void addTopKWork(const Schedule &schedule, const ExprProgram &pattern, const TreeNode &leaf,
                 const std::vector<const TreeNode *> &loops, double times, bool cpu,
                 cost::Counts &counts);

/// The rules of a schedule of topk that this one breaks. Its axes have been verified.
std::vector<std::string> topKProblems(const Schedule &schedule, const ExprProgram &pattern,
                                      int equation);

} // namespace fusec::tiling

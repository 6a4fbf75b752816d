#pragma once
#include "Fusion/AccurateCost.h"
#include "Fusion/QuickCost.h"

namespace fusec {

/// Whether two kernels may become one, and whether that pays.
struct MergeVerdict {
  /// The equations can be one kernel; the order among the plan's kernels may forbid it.
  bool isLegal = true;
  bool isFaster = false; // faster than the two; other kernels of the plan may get slower
  std::string reason;    // for people: the reason, or the seconds of both
};

/// Says whether the kernels `a` and `b` of a partition may become one. The models are asked only about merges that are
/// legal and keep the order among kernels acyclic.
Result<MergeVerdict> judgeMerge(const FusionContext &context, const SearchGraph &region,
                                const QuickCost &quick, AccurateCost &accurate,
                                const VertexSets &sets, const Partition &partition,
                                const std::vector<int> &a, const std::vector<int> &b);

} // namespace fusec

#pragma once
#include "Fusion/Explore.h"

#include <functional>

namespace fusec {

/// A way to cut a region into kernels.
struct PlanDraft {
  std::string origin; // which search found it
  Partition partition;
  double gain = 0; // beam search: seconds saved, by the quick model
};

/// FusionStitching's beam (section 5.3): from producers to consumers, each vertex that no kernel holds yet stays
/// alone or takes one of its candidates; the `beamWidth` drafts with the largest gain go on. Best first. Sets that
/// the drafts use are added to `sets`.
std::vector<PlanDraft> beamSearch(const SearchGraph &region,
                                  const std::vector<std::vector<Candidate>> &candidates,
                                  const FusionLimits &limits, VertexSets &sets);

/// Merges kernels along values, and equations that read one tensor, the largest gain first, until no merge gains any
/// more: what most compilers do, and a seed of the search.
PlanDraft greedyMerge(const FusionContext &context, const SearchGraph &region,
                      const QuickCost &quick, VertexSets &sets);

/// Souffle's partition (section 5.3) as a seed: from the inputs on, everything up to a contraction, or to what cannot
/// be in the same kernel, is one kernel. A kernel that does not pay is cut behind the last of its reductions, or of the
/// maps that finish one, up to which it pays; the rest is cut in the same way. `pays` is called with vertices that can
/// be one kernel.
Result<PlanDraft> topDown(const FusionContext &context, const SearchGraph &region,
                          const std::function<Result<bool>(const std::vector<int> &)> &pays,
                          VertexSets &sets);

/// Makes one kernel of the vertices.
void assign(PlanDraft &draft, VertexSets &sets, const std::vector<int> &vertices);

/// Drops drafts that have the same kernels as an earlier one: searches often arrive at the same.
void dropEqual(std::vector<PlanDraft> &drafts, const VertexSets &sets);

} // namespace fusec

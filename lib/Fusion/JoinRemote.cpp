#include "Fusion/JoinRemote.h"

#include <algorithm>

namespace fusec {

/// Seconds of the draft's kernels that hold the vertices; nullopt where they hold others too, since patterns that were
/// taken before have made one of them larger, or are one kernel.
static Result<std::optional<double>> secondsApart(const VertexSets &sets, const PlanDraft &draft,
                                                  const std::vector<int> &vertices,
                                                  AccurateCost &accurate) {
  double apart = 0;
  for (int v : vertices) {
    const std::vector<int> kernel = kernelOf(sets, draft.partition, v);
    if (kernel == vertices ||
        !std::includes(vertices.begin(), vertices.end(), kernel.begin(), kernel.end()))
      return std::optional<double>();
    if (kernel.front() == v) {
      FUSEC_TRY(double seconds, accurate.kernelSeconds(kernel));
      apart += seconds;
    }
  }
  return std::optional<double>(apart);
}

Result<bool> joinRemote(const FusionContext &context, const SearchGraph &region,
                        const QuickCost &quick, AccurateCost &accurate, const FusionLimits &limits,
                        VertexSets &sets, PlanDraft &draft) {
  bool changed = false;
  for (const Candidate &candidate :
       remotePatterns(context, region, quick, limits, sets, draft.partition,
                      [&](int v) { return accurate.key(v); })) {
    FUSEC_TRY(std::optional<double> apart, secondsApart(sets, draft, candidate.vertices, accurate));
    if (!apart || !staysAcyclic(region, sets, draft.partition, candidate.vertices))
      continue;
    FUSEC_TRY(double together, accurate.kernelSeconds(candidate.vertices));
    if (together >= *apart)
      continue;
    assign(draft, sets, candidate.vertices);
    changed = true;
  }
  return changed;
}

} // namespace fusec

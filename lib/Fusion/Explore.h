#pragma once
#include "Fusion/PatternReduction.h"
#include "Fusion/QuickCost.h"
#include "Support/Hash.h"

#include <functional>

namespace fusec {

/// Candidate patterns of every vertex that begin with it and save time, best first: FusionStitching's approximate
/// dynamic programming (section 5.2). Vertices are visited from the outputs to the inputs. Each combines, for each of
/// its consumers, one of that consumer's own candidates or none (PatternReduction). A consumer alone is its last
/// candidate, since it saves nothing.
std::vector<std::vector<Candidate>> explorePatterns(const FusionContext &context,
                                                    const SearchGraph &region,
                                                    const QuickCost &quick,
                                                    const FusionLimits &limits);

/// Remote patterns (the same section): kernels of a draft that share a launch though no value goes from one to the
/// other. PatternReduction once more, of a virtual vertex whose consumers are all of the draft's kernels, each to be
/// taken or not. Best first: those of the whole list and, since it keeps a few for a whole network, those of each half,
/// quarter and so on of the consumers. They are ordered by their distance from the inputs and halved between distances,
/// then between what makes the values that they read; what `computes` says of an equation decides the rest, so that the
/// order in which a model lists its nodes does not matter.
std::vector<Candidate> remotePatterns(const FusionContext &context, const SearchGraph &region,
                                      const QuickCost &quick, const FusionLimits &limits,
                                      const VertexSets &sets, const Partition &partition,
                                      const std::function<Hash128(int vertex)> &computes);

} // namespace fusec

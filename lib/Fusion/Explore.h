#pragma once
#include "Fusion/Plan.h"
#include "Fusion/Score.h"

namespace fusec {

struct Candidate {
  std::vector<int> vertices; // ascending, the first one is the vertex that it belongs to
  double gain;               // predicted seconds saved over kernels of one equation
};

/// FusionStitching's PatternReduction (section 5.2): candidate patterns of every vertex, best first, that begin with it
/// and save time. Vertices are visited from the outputs to the inputs. A vertex takes each of its consumers with one of
/// that consumer's own candidates or not at all: for two consumers with three candidates each (3+1)^2 - 1 = 15
/// combinations, of which the best three stay. More consumers are halved, and the halves' survivors are combined.
std::vector<std::vector<Candidate>> explorePatterns(const FusionContext &context,
                                                    const Region &region, const Score &score,
                                                    const FusionLimits &limits);

} // namespace fusec

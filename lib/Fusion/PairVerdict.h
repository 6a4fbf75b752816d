#pragma once
#include "Fusion/Judge.h"
#include "Fusion/Score.h"

namespace fusec {

/// What speaks against one kernel in the place of two.
struct PairVerdict {
  bool isLegal = true;   // an order among the plan's kernels apart
  bool isFaster = false; // than two, alone: other kernels of the plan may lose by it
  std::string told;      // for people: the reason, or the seconds of both
};

/// On two kernels of a partition. Asks both models only about what is legal and leaves an order.
Result<PairVerdict> judgePair(const FusionContext &context, const Region &region,
                              const Score &score, Judge &judge, const VertexSets &sets,
                              const Partition &partition, const std::vector<int> &a,
                              const std::vector<int> &b);

} // namespace fusec

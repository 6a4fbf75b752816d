#pragma once
#include "Fusion/Beam.h"
#include "Fusion/Judge.h"

namespace fusec {

/// Takes the draft's remote patterns (Explore.h), those that the quick model finds best first, wherever the accurate
/// one agrees that one launch is faster. True if it took any.
Result<bool> joinRemote(const FusionContext &context, const Region &region, const Score &score,
                        Judge &judge, const FusionLimits &limits, VertexSets &sets,
                        PlanDraft &draft);

} // namespace fusec

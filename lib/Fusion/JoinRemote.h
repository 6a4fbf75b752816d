#pragma once
#include "Fusion/Beam.h"
#include "Fusion/Judge.h"

namespace fusec {

/// Takes the draft's remote patterns (Explore.h), best first by the quick model, if the accurate model agrees that one
/// launch is faster. Returns true if it took any.
Result<bool> joinRemote(const FusionContext &context, const Region &region, const Score &score,
                        Judge &judge, const FusionLimits &limits, VertexSets &sets,
                        PlanDraft &draft);

} // namespace fusec

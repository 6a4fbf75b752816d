#pragma once
#include "Fusion/AccurateCost.h"
#include "Fusion/Beam.h"

namespace fusec {

/// Takes the draft's remote patterns (Explore.h), best first by the quick model, if the accurate model agrees that one
/// launch is faster. Returns true if it took any.
Result<bool> joinRemote(const FusionContext &context, const SearchGraph &region,
                        const QuickCost &quick, AccurateCost &accurate, const FusionLimits &limits,
                        VertexSets &sets, PlanDraft &draft);

} // namespace fusec

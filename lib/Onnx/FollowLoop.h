#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// What a Loop carries out, where that follows from sizes whatever trip is its last one; of its other outputs nothing.
std::vector<std::optional<KnownValues::Elements>> followLoop(KnownValues &values, const Node &node);

} // namespace fusec

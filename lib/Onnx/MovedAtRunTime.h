#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

// Pad and Slice whose operands are run-time values, where the model declares the output's shape: each axis is gathered
// at positions that are computed when the values are there.

/// Input 1 holds the pads of all axes, or of those in input 3; `out` is the output's shape.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out);

/// Whether some of starts, ends, axes and steps (inputs 1 to 4) are run-time values, and `out` can be the output's
/// shape of a Slice whose operands fit each other.
bool mayBeSlicedAtRunTime(const NodeImporter &n, const Shape &out);
Status sliceAtRunTime(NodeImporter &n, const Shape &out);

} // namespace fusec

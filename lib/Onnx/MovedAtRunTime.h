#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

// Pad and Slice whose operands are run-time values: each axis is gathered at positions that are computed when the
// values are there. Where the model declares the output's shape, that holds; else a slice's length depends on data.

/// Input 1 holds the pads of all axes, or of those in input 3; `out` is the output's shape.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out);

/// Whether some of starts, ends, axes and steps (inputs 1 to 4) are run-time values, and `out` can be the output's
/// shape of a Slice whose operands fit each other.
bool mayBeSlicedAtRunTime(const NodeImporter &n, const Shape &out);
Status sliceAtRunTime(NodeImporter &n, const Shape &out);

/// Slices `axes` by `steps` from starts (input 1) to ends (input 2), which are values of the
/// data, or expressions that decide the length where they are known.
Status sliceByData(NodeImporter &n, const std::vector<int64_t> &axes,
                   const std::vector<int64_t> &steps);

} // namespace fusec

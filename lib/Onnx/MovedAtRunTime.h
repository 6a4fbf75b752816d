#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

// Pad and Slice whose operands are run-time values: each axis is gathered at positions that are computed when the
// values are there. Where the model declares the output's shape, that holds; else a slice's length depends on data.

/// How many elements a Pad adds in front of axes and behind them, or takes away where they are negative: integers for
/// each of `axes` (kNoValue: all). `fill` is what mode constant adds.
struct PadOperands {
  ValueId begins, ends, axes, fill;
};
/// What Pad has: input 1 holds the pads of all axes, or of those in input 3.
PadOperands padOperands(NodeImporter &n);
/// `out` is the output's shape.
Status padAtRunTime(NodeImporter &n, const std::string &mode, const Shape &out,
                    const PadOperands &pads);

/// The run-time pads make the declared shape `out`, of elements that there are where they repeat these.
Status requirePads(NodeImporter &n, const std::string &mode, const Shape &out,
                   const PadOperands &pads);

/// Whether some of starts, ends, axes and steps (inputs 1 to 4) are run-time values, and `out` can be the output's
/// shape of a Slice whose operands fit each other.
bool mayBeSlicedAtRunTime(const NodeImporter &n, const Shape &out);
Status sliceAtRunTime(NodeImporter &n, const Shape &out);

/// Slices `axes` by `steps` (input 4 where they are not fixed) from starts (input 1) to ends (input 2), which are
/// values of the data, or expressions that decide the length where they are known.
Status sliceByData(NodeImporter &n, const std::vector<int64_t> &axes, const Shape &steps);

} // namespace fusec

#pragma once
#include "Onnx/ResizeForm.h"

namespace fusec {

/// The inputs of a Resize behind the data: scales or sizes, and the region of a crop (`roi`). Those that it lacks, or
/// that have no effect, are nothing.
struct ResizeOperands {
  std::optional<size_t> roi, scales, sizes;
};

/// The operands that say where the output's elements lie and are run-time values. Sizes to stretch to say no more than
/// the output's shape.
std::vector<size_t> openOperands(const NodeImporter &n, const ResizeForm &form,
                                 const ResizeOperands &operands);

/// A Resize with such operands, `open`, where the output's shape follows from sizes or is declared: positions and
/// weights are computed when the values are there, and each axis is gathered once a tap.
Status resizeAtRunTime(NodeImporter &n, const ResizeForm &form, const ResizeOperands &operands,
                       const std::vector<size_t> &open);

} // namespace fusec

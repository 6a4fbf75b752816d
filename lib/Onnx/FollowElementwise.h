#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// Arithmetic of elements, and what makes tensors of sizes: Shape, Size, Range, ConstantOfShape. The output's elements,
/// whose number is known; nothing for other operators.
std::optional<KnownValues::Elements> followElementwise(KnownValues &values, const Node &node);

} // namespace fusec

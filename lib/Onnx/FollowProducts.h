#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// MatMul, Gemm and Einsum: sums of products whose axes letters name.
bool addsProducts(OpKind op);
/// The output's elements.
std::optional<KnownValues::Elements> followProducts(KnownValues &values, const Node &node);

} // namespace fusec

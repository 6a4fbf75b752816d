#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// Operators that go along the lines of a tensor: reductions, running sums and products, the order of elements.
bool goesAlongLines(OpKind op);
/// The outputs' elements.
std::vector<std::optional<KnownValues::Elements>> followLines(KnownValues &values,
                                                              const Node &node);

} // namespace fusec

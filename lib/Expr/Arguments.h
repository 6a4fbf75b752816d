#pragma once
#include <cstddef>

namespace fusec {

/// Tensors that a kernel takes.
constexpr size_t kMostArguments = 64;
/// Tensors that one equation may read: with its output, all that a kernel takes. Operators with more operands become
/// several equations.
constexpr size_t kMostOperands = kMostArguments - 1;

} // namespace fusec

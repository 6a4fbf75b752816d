#pragma once
#include <cstddef>

namespace fusec {

/// Tensors that a kernel takes.
constexpr size_t kMostArguments = 64;
/// That one equation reads: with its output, what a kernel takes. Operators with more become several equations.
constexpr size_t kMostOperands = kMostArguments - 1;

} // namespace fusec

#pragma once
#include <cstdint>

namespace fusec {

/// More elements than the memory of a block or of a lane holds on any target, by far: the largest one of the tables has
/// some MB. Who asks for room takes what may be beyond it, a size or a product of several, as a size without a bound.
constexpr int64_t kMostOnChip = INT32_MAX;

} // namespace fusec

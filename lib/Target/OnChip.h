#pragma once
#include <cstdint>

namespace fusec {

/// More elements than the memory of a block or of a lane holds on any target, by far: the largest one of the tables has
/// some MB. Who asks for room takes a size that may be beyond it as one without a bound, and multiplies those within,
/// by each other and by the bytes of an element, in 64 bits.
constexpr int64_t kMostOnChip = INT32_MAX;

} // namespace fusec

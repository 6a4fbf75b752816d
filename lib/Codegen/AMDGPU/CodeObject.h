#pragma once
#include "Support/Result.h"

#include <cstdint>
#include <vector>

namespace fusec {

/// Makes one note of metadata of the notes that a linked AMD code object has, one for each object that it was linked
/// from: readers that take the first one alone know its kernels alone.
Status mergeMetadata(std::vector<uint8_t> &object);

} // namespace fusec

#pragma once
#include "Support/DType.h"
#include "Support/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fusec::tools {

/// Writes a NumPy file, version 1, C order. bf16 becomes the two-byte void type "|V2", as the Python package ml_dtypes
/// writes it.
Status writeNpy(const std::string &path, DType type, const std::vector<int64_t> &dims,
                const void *bytes, int64_t sizeBytes);

} // namespace fusec::tools

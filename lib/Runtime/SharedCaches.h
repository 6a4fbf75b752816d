#pragma once
#include "Bundle/Model.h"

namespace fusec::rt {

/// Gives the symbols of a model's caches the values that a run with shared memory has, where each cache that grows has
/// room for `rows`; `values` are those of a run without. What is wrong is returned, or empty.
std::string shareCaches(const bundle::Model &model, int64_t rows, std::vector<int64_t> &values);

} // namespace fusec::rt

#pragma once
#include "Bundle/Model.h"
#include "Support/Result.h"

namespace fusec::bundle {

/// Inputs and outputs that may be one memory, behind the checks of values and programs.
Status checkCaches(const Model &model);
/// Whether a program's tensor may have this shape for input or output number `index`: the model's, but for the rows of
/// a cache that grows.
bool fitsValue(const Model &model, bool input, size_t index, const std::vector<DimCode> &shape);

} // namespace fusec::bundle

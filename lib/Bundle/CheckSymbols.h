#pragma once
#include "Bundle/Model.h"
#include "Support/DimProgram.h"
#include "Support/Result.h"

#include <set>

namespace fusec::bundle {

constexpr size_t kMaxValues = 1 << 20; // inputs, outputs, tensors, kernels of one bundle

/// Not empty, at most 64 KiB, without a zero byte.
bool usableName(const std::string &name);

/// Names, ranges and definitions of the model's symbols. `names`: of symbols and inferred sizes, so far.
Status checkSymbols(const Model &model, std::set<std::string> &names);
/// Inferred sizes, and what nodes ask of sizes.
Status checkSizeRules(const Model &model, std::set<std::string> &names);

} // namespace fusec::bundle

#pragma once
#include "Support/Dim.h"

namespace fusec {

/// The values that kernels are tuned for, by symbol: for DimExpr::evaluate. Where the user favours none, a typical size
/// of the symbol's kind (TunedSizes.h).
std::vector<int64_t> optValues(const std::vector<Symbol> &symbols);

} // namespace fusec

#pragma once
#include "Support/Dim.h"

namespace fusec {

/// The values that kernels are tuned for, by symbol: for DimExpr::evaluate.
inline std::vector<int64_t> optValues(const std::vector<Symbol> &symbols) {
  std::vector<int64_t> values;
  values.reserve(symbols.size());
  for (const Symbol &s : symbols)
    values.push_back(s.opt);
  return values;
}

} // namespace fusec

#pragma once
#include "Support/Dim.h"

#include <optional>

namespace fusec {

/// The size of a dimension after broadcasting, or nullopt when the sizes differ or may differ.
std::optional<DimExpr> broadcastDim(const DimExpr &a, const DimExpr &b);

/// (product of `num`) / (product of `den`) when that is exact for all symbol values; common factors cancel
/// symbolically.
std::optional<DimExpr> exactQuotient(const Shape &num, const Shape &den,
                                     const std::vector<Symbol> &symbols);

/// Product of dims [begin, end).
DimExpr product(const Shape &shape, size_t begin, size_t end);

} // namespace fusec

#pragma once
#include "Support/Dim.h"

namespace fusec {

/// How large an expression is, written out: parts that several operands share count for each of them.
struct DimSize {
  int32_t depth = 0; // operations one inside the other, sums and products of a normal form aside
  int32_t nodes = 1; // of one beyond kLargestDim: see isTooLarge
};
DimSize sizeOf(const DimExpr &e);

/// What sizes of a model may have, so that functions over expressions can recurse, and what later stages make of them.
/// An operation whose result would be larger gives an expression without a value, and so do all on that: `isTooLarge`.
constexpr DimSize kLargestSizeOfModel{48, 1024};
constexpr DimSize kLargestDim{150, 1 << 20};

bool isTooLarge(const DimExpr &e, const DimSize &limit = kLargestDim);

} // namespace fusec

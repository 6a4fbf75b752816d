#pragma once
#include "Expr/lower/Lowering.h"

namespace fusec::lower {

/// Whether the `k` first elements of `row` elements are found by sorting parts of the row and merging them:
/// where one block cannot sort the row, and more places are asked for than passes over the row would find sooner.
bool sortsInRuns(NodeLowering &n, const DimExpr &row, const DimExpr &k);
/// Whether that is so for the length that the row has.
Val isSoonerInRuns(EquationBuilder &b, const DimExpr &row, const DimExpr &k);

/// Indices (i64) of the `k` first elements of each row of `x` [rows..., n], in order, as topk has it (OpaqueOps.def).
/// The result is [rows..., 1, k].
TensorId firstInRuns(NodeLowering &n, TensorId x, const DimExpr &k, bool largest);

} // namespace fusec::lower

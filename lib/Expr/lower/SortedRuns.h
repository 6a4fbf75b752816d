#pragma once
#include "Expr/lower/Lowering.h"

namespace fusec::lower {

/// Whether the `k` first elements of `row` elements are found by sorting parts of the row and merging them:
/// where one block cannot sort the row, and more places are asked for than passes over the row would find sooner.
bool sortsInRuns(NodeLowering &n, const DimExpr &row, const DimExpr &k);
/// What of a row may be sorted by one block.
DimExpr sortedByBlock(const DimExpr &row);
/// Whether parts of rows that no block sorts are sorted and merged, whatever their length.
bool areAlwaysSoonerInRuns(const DimExpr &row, const DimExpr &k,
                           const std::vector<Symbol> &symbols);
/// Whether parts of a row that no block sorts are sorted and merged, for the length that it has.
Val isSoonerInRuns(EquationBuilder &b, const DimExpr &row, const DimExpr &k);

/// Indices (i64) of the `k` first elements of each row of `x` [rows..., n], in order, as topk has it (OpaqueOps.def).
/// The result is [rows..., 1, k].
TensorId firstInRuns(NodeLowering &n, TensorId x, const DimExpr &k, bool largest);

} // namespace fusec::lower

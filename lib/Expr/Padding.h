#pragma once
#include "Expr/Expr.h"

#include <optional>
#include <vector>

namespace fusec {

/// Index operands of a Read or ReadIf node, without predicate and else-value.
std::vector<NodeId> indexOperands(const Scalar &read);

/// The ReadIf is padding: every conjunct of its predicate only keeps an index expression of the read within bounds
/// (lower <= index or index <= upper), and the else-value is a constant. The result has the inclusive bounds of each
/// dimension; sides that the predicate leaves open come from the tensor's shape.
struct IndexBounds {
  DimExpr lower, upper;
  /// The predicate itself keeps the index at or below `upper`.
  bool testsUpper = false;
};
std::optional<std::vector<IndexBounds>> paddingBounds(const Equation &equation, NodeId readIf,
                                                      const ExprProgram &program);
/// Axes, as a set of bits, of which the predicate of such a read lets no value beyond the extent read beyond the
/// tensor: with an axis its index rises, and is tested against the upper bound.
uint64_t axesThatPaddingBounds(const Equation &equation, NodeId readIf, const ExprProgram &program);

} // namespace fusec

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
};
std::optional<std::vector<IndexBounds>> paddingBounds(const Equation &equation, NodeId readIf,
                                                      const ExprProgram &program);

} // namespace fusec

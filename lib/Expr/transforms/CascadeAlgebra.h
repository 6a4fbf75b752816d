#pragma once
#include "Expr/Expr.h"

#include <string>
#include <vector>

namespace fusec {

/// A value that a reduction folds while other reductions over the same points are still running: their results are
/// State leaves of `body`. `values` and `monoids`: what those states fold, nodes of `body` too.
struct CascadedValue {
  NodeId value;
  Monoid monoid;
  int numSpatial; // axes from here on are those of the reduction
  DimExpr points; // of the reduction
  DType type;     // of all states
  std::vector<NodeId> values;
  std::vector<Monoid> monoids;
};

/// How it can be folded in the same pass.
struct Separation {
  std::string refusal; // not at all: why
  /// What to fold instead of `value`. It may hold State leaves, then `correction` is that of CascadeState, with
  /// Part(s) of the new state itself for s = values.size().
  NodeId value = kNoNode;
  NodeId correction = kNoNode;
  /// The result is (what was folded) `finish` `rest`, a node of State leaves at their last values; kNoNode: as it is.
  ScalarOp finish = ScalarOp::Mul;
  NodeId rest = kNoNode;
  /// `value` and `correction` use a further state s = values.size(), in front of which the new one becomes
  /// values.size() + 1: the sum of 1 over the points.
  bool counts = false;
};
Separation separate(Body &body, const CascadedValue &what);

} // namespace fusec

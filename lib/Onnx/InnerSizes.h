#pragma once
#include "Onnx/NodeImporter.h"

#include <set>

namespace fusec {

/// A size of what an If makes that is told behind it, since the data tells it inside of a branch or says which of two
/// sizes it is. Both branches hand on as many elements as it may be at most, and the number of those that are meant.
struct InnerSize {
  DimExpr ifTrue, ifFalse, most;
  size_t output, axis; // the first that has it, after which it is called
};

/// The inner sizes of one If. What is told from here on, in a branch, is known there alone.
class InnerSizes {
public:
  explicit InnerSizes(NodeImporter &n);

  bool areIn(const std::vector<SymbolId> &used) const;
  bool hasInner(const DimExpr &size) const;

  /// The number of the one that the branches tell as these.
  Result<size_t> of(const DimExpr &ifTrue, const DimExpr &ifFalse, size_t output, size_t axis);

  std::vector<InnerSize> found;

private:
  struct Bounds {
    DimExpr least, most;
  };

  std::optional<DimExpr> mostOf(const DimExpr &size) const;
  std::optional<Bounds> boundsOf(const DimExpr &size) const;
  std::optional<Bounds> combined(DimExpr::Op op, const Bounds &a, const Bounds &b) const;
  bool isMonotone(const DimExpr &size, std::set<SymbolId> &seen) const;
  bool isLinear(const DimExpr &size) const;
  Diagnostic hasNoMost(const DimExpr &size, size_t output, size_t axis) const;
  std::vector<Symbol> outerGiven() const;

  NodeImporter &n;
  const size_t around;
};

} // namespace fusec

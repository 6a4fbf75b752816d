#pragma once
#include "Graph/Graph.h"

#include <optional>
#include <unordered_map>

namespace fusec {

/// Between which sizes the elements of an integer tensor lie whatever the data, both included; an end that is not
/// known is absent.
struct IntegerRange {
  std::optional<DimExpr> least, largest;
  /// Whether both ends are elements wherever the tensor has any: what does not hold of an end then holds of no run.
  bool areReached = false;
  /// Ranges of the elements at each index of `axis`, as of the columns of places in a tensor; empty where they are not
  /// told apart.
  std::vector<IntegerRange> parts = {};
  size_t axis = 0; // of `parts`
};
using IntegerRanges = std::unordered_map<ValueId, IntegerRange>;

/// The range of the value's elements. `ranges`: those of nodes so far.
IntegerRange rangeOf(const Graph &graph, const IntegerRanges &ranges, ValueId id);

/// Adds what is known of the outputs of `node`, whose types and shapes are set.
void followRanges(const Graph &graph, IntegerRanges &ranges, const Node &node);

/// Whether all elements are indices of an axis of this size, where negative ones count from its end.
bool areWithin(const IntegerRange &range, const DimExpr &size, const std::vector<Symbol> &symbols);

} // namespace fusec

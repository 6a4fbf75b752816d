#pragma once
#include "Graph/Graph.h"
#include "Graph/Passes.h"
#include "Reference/TensorValue.h"

#include <functional>

namespace fusec {

struct GraphInterpreterOptions {
  /// Called with every value that the top level of the graph computes, before rounding.
  std::function<void(ValueId, const TensorValue &)> observer;
  int64_t maxLoopTrips = 10'000'000;
  /// Rounds every node's results to their declared types, as a program that stores them would: for comparisons
  /// with single operators' expected outputs, where rounding decides ties.
  bool roundEachValue = false;
};

/// Runs a graph on given inputs (one a graph input, in order) and returns its outputs, rounded to their
/// declared types. Float arithmetic is done in double throughout, whatever the declared type; see README.md
/// for the rounding, integer and NaN rules. Symbols take their values from the inputs' dims and, where they
/// depend on data, from what the nodes compute; a computed shape that contradicts the graph's is an error.
Result<std::vector<TensorValue>> evaluate(const Graph &graph,
                                          const std::vector<TensorValue> &inputs,
                                          const GraphInterpreterOptions &options = {});

/// Evaluates one node on constants, for the importer's folding. Nodes with regions are not folded.
ConstantEvaluator referenceEvaluator();

} // namespace fusec

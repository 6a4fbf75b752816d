#pragma once
#include "Graph/Graph.h"

#include <functional>

namespace fusec {

/// Computes the outputs of one node from constant inputs (nullptr where an input is absent). The graph
/// gives the types and shapes of the node's values.
using ConstantEvaluator = std::function<Result<std::vector<ConstantRef>>(
    const Graph &, const Node &, const std::vector<ConstantRef> &inputs)>;

/// Constants with more elements than this stay in the program and are computed by compiled code.
constexpr int64_t kMaxFoldedElements = 64 * 1024;

struct GraphPassOptions {
  ConstantEvaluator evaluator; // fold-constants does nothing without it
};

struct GraphPass {
  std::string_view name;
  std::string_view help;
  Result<Graph> (*run)(Graph graph, const GraphPassOptions &options);
};
/// All passes in the order in which the compiler runs them.
const std::vector<GraphPass> &graphPasses();

Result<Graph> foldConstants(Graph graph, const GraphPassOptions &options);
Result<Graph> eliminateIdentities(Graph graph, const GraphPassOptions &options);
Result<Graph> eliminateCommonSubexpressions(Graph graph, const GraphPassOptions &options);
/// Removes nodes, region inputs' constants and values that no output needs, and renumbers values in the
/// order of the text form, so that a parsed dump is the same graph to the last id.
Result<Graph> eliminateDeadCode(Graph graph, const GraphPassOptions &options);

/// Sets `captures` of all regions below `body` from their uses.
void computeCaptures(Graph &graph);
/// The constant's value as a node's operand, or nullptr.
ConstantRef constantOf(const Graph &graph, ValueId id);

} // namespace fusec

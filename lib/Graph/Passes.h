#pragma once
#include "Graph/Graph.h"
#include "Support/Pass.h"

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

/// All passes in the order in which the compiler runs them.
std::vector<Pass<Graph>> graphPasses(const GraphPassOptions &options);

/// Outputs of a node with constant inputs, computed by `evaluator`; nullopt when it is not set, an input
/// is not constant, an output is too large, or the evaluator refuses the node.
std::optional<std::vector<ConstantRef>> foldNode(const Graph &graph, const Node &node,
                                                 const ConstantEvaluator &evaluator);

/// Nodes whose inputs are constant and whose outputs are small become constants.
Result<Graph> foldConstants(Graph graph, const GraphPassOptions &options);
/// Removes nodes that return their operand: Identity, and data movement that moves nothing.
Result<Graph> eliminateIdentities(Graph graph, const GraphPassOptions &options);
/// Removes all but one of equal nodes of a region.
Result<Graph> eliminateCommonSubexpressions(Graph graph, const GraphPassOptions &options);
/// A Concat whose result only another one along the same axis reads becomes part of that one.
Result<Graph> mergeConcatenations(Graph graph, const GraphPassOptions &options);
/// Removes nodes and values that no output needs, lists nodes in the order in which the outputs need them (whatever the
/// order was before) and renumbers values in the order of the text form, so that a parsed dump is the same graph to the
/// last id. Every list of passes ends with it.
Result<Graph> eliminateDeadCode(Graph graph, const GraphPassOptions &options);

/// Sets `captures` of all regions below `body` from their uses.
void computeCaptures(Graph &graph);
/// The constant's value as a node's operand, or nullptr.
ConstantRef constantOf(const Graph &graph, ValueId id);

} // namespace fusec

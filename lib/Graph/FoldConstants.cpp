#include "Graph/Passes.h"

#include <algorithm>

namespace fusec {

std::optional<std::vector<ConstantRef>> foldNode(const Graph &graph, const Node &node,
                                                 const ConstantEvaluator &evaluator) {
  // A symbol has its value from a DataSize node, whatever the size is.
  if (!evaluator || !node.regions.empty() || node.op == OpKind::DataSize)
    return std::nullopt;
  std::vector<ConstantRef> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr : graph.value(id).constant);
    if (id != kNoValue && !inputs.back())
      return std::nullopt;
  }
  for (ValueId id : node.outputs) {
    if (id == kNoValue)
      return std::nullopt;
    int64_t count = 1;
    for (const DimExpr &d : graph.value(id).shape)
      if (!d.isConst() || __builtin_mul_overflow(count, d.constValue(), &count))
        return std::nullopt;
    if (count > kMaxFoldedElements)
      return std::nullopt;
  }
  auto outputs = evaluator(graph, node, inputs);
  if (!outputs.ok() || outputs->size() != node.outputs.size())
    return std::nullopt;
  return std::move(*outputs);
}

static void foldRegion(Graph &graph, Region &region, const ConstantEvaluator &evaluator,
                       const std::vector<bool> &isOutput) {
  std::vector<Node> kept;
  for (Node &n : region.nodes) {
    for (Region &r : n.regions)
      foldRegion(graph, r, evaluator, isOutput);
    auto folded = foldNode(graph, n, evaluator);
    // A graph output is made by a node, so that the runtime has something to run for it.
    if (!folded || std::any_of(n.outputs.begin(), n.outputs.end(),
                               [&](ValueId id) { return isOutput[static_cast<size_t>(id)]; })) {
      kept.push_back(std::move(n));
      continue;
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      Value &v = graph.value(n.outputs[i]);
      v.constant = (*folded)[i];
      v.known.clear();
    }
  }
  region.nodes = std::move(kept);
}

Result<Graph> foldConstants(Graph graph, const GraphPassOptions &options) {
  std::vector<bool> isOutput(graph.values.size(), false);
  for (ValueId id : graph.body.outputs)
    isOutput[static_cast<size_t>(id)] = true;
  if (options.evaluator)
    foldRegion(graph, graph.body, options.evaluator, isOutput);
  return graph;
}

} // namespace fusec

#include "Graph/Passes.h"

namespace fusec {

std::optional<std::vector<ConstantRef>> foldNode(const Graph &graph, const Node &node,
                                                 const ConstantEvaluator &evaluator) {
  if (!evaluator || !node.regions.empty())
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

static void foldRegion(Graph &graph, Region &region, const ConstantEvaluator &evaluator) {
  std::vector<Node> kept;
  for (Node &n : region.nodes) {
    for (Region &r : n.regions)
      foldRegion(graph, r, evaluator);
    auto folded = foldNode(graph, n, evaluator);
    bool isOutput = false;
    for (ValueId id : n.outputs)
      for (ValueId out : graph.body.outputs)
        isOutput = isOutput || id == out;
    // A graph output is made by a node, so that the runtime has something to run for it.
    if (!folded || isOutput) {
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
  if (options.evaluator)
    foldRegion(graph, graph.body, options.evaluator);
  return graph;
}

} // namespace fusec

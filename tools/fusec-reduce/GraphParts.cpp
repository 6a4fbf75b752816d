#include "Parts.h"

#include "Graph/Passes.h"

#include <algorithm>
#include <set>

namespace fusec::reduce {

namespace {

/// Values that a node reads, in its regions too; constants belong to nobody and are left out.
void collectUses(const Graph &graph, const Node &node, std::set<ValueId> &uses) {
  auto use = [&](ValueId id) {
    if (id != kNoValue && !graph.value(id).constant)
      uses.insert(id);
  };
  for (ValueId id : node.inputs)
    use(id);
  for (const Region &region : node.regions)
    for (ValueId id : region.captures)
      use(id);
}

std::optional<Graph> finish(Graph graph) {
  if (graph.body.outputs.empty())
    return std::nullopt;
  std::set<ValueId> used(graph.body.outputs.begin(), graph.body.outputs.end());
  for (const Node &node : graph.body.nodes)
    collectUses(graph, node, used);
  std::erase_if(graph.body.inputs, [&](ValueId id) { return !used.count(id); });
  Result<Graph> swept = eliminateDeadCode(std::move(graph), {});
  if (!swept || !verify(*swept))
    return std::nullopt;
  return std::move(*swept);
}

} // namespace

std::optional<Graph> partOf(const Graph &graph, const Choice &nodes) {
  std::set<ValueId> madeHere, usedHere, usedElsewhere;
  Graph part = graph;
  part.body.nodes.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node &node = graph.body.nodes[i];
    collectUses(graph, node, nodes[i] ? usedHere : usedElsewhere);
    if (!nodes[i])
      continue;
    part.body.nodes.push_back(node);
    madeHere.insert(node.outputs.begin(), node.outputs.end());
  }
  // In the order of the model, so that equal choices give equal texts.
  for (const Node &node : graph.body.nodes)
    for (ValueId id : node.outputs)
      if (usedHere.count(id) && !madeHere.count(id))
        part.body.inputs.push_back(id);
  std::erase_if(part.body.outputs, [&](ValueId id) { return !madeHere.count(id); });
  for (const Node &node : part.body.nodes)
    for (ValueId id : node.outputs)
      if (usedElsewhere.count(id) && std::find(part.body.outputs.begin(), part.body.outputs.end(),
                                               id) == part.body.outputs.end())
        part.body.outputs.push_back(id);
  return finish(std::move(part));
}

std::optional<Graph> withOutputs(const Graph &graph, const Choice &outputs) {
  Graph part = graph;
  part.body.outputs.clear();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i])
      part.body.outputs.push_back(graph.body.outputs[i]);
  if (part.body.outputs.empty())
    return std::nullopt;
  // Nodes go first, so that what only they read is no input any more.
  Result<Graph> swept = eliminateDeadCode(std::move(part), {});
  return swept ? finish(std::move(*swept)) : std::nullopt;
}

} // namespace fusec::reduce

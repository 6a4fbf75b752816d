#include "Graph/Passes.h"

#include <algorithm>

// Runs last in every list of passes: whatever a pass leaves unused goes here, and the numbering becomes that of the
// text form, on which the equality of dumps rests.

namespace fusec {
namespace {

/// Marks what the outputs of a region need and erases the rest.
void sweep(Region &region, std::vector<bool> &live) {
  for (ValueId id : region.outputs)
    live[static_cast<size_t>(id)] = true;
  std::vector<Node> kept;
  for (auto it = region.nodes.rbegin(); it != region.nodes.rend(); ++it) {
    Node &n = *it;
    bool needed = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId id) {
      return id != kNoValue && live[static_cast<size_t>(id)];
    });
    if (!needed)
      continue;
    for (ValueId id : n.inputs)
      if (id != kNoValue)
        live[static_cast<size_t>(id)] = true;
    for (Region &r : n.regions)
      sweep(r, live);
    kept.push_back(std::move(n));
  }
  std::reverse(kept.begin(), kept.end());
  region.nodes = std::move(kept);
}

/// Visits definitions in the order in which the text form gives them.
template <typename F> void definitions(Region &region, F visit) {
  for (ValueId &id : region.inputs)
    visit(id);
  for (Node &n : region.nodes) {
    for (ValueId &id : n.outputs)
      visit(id);
    for (Region &r : n.regions)
      definitions(r, visit);
  }
}
template <typename F> void uses(Region &region, F visit) {
  for (Node &n : region.nodes) {
    for (ValueId &id : n.inputs)
      visit(id);
    for (Region &r : n.regions) {
      for (ValueId &id : r.captures)
        visit(id);
      uses(r, visit);
      std::sort(r.captures.begin(), r.captures.end());
    }
  }
  for (ValueId &id : region.outputs)
    visit(id);
}

void renumber(Graph &graph, const std::vector<bool> &live) {
  std::vector<ValueId> newId(graph.values.size(), kNoValue);
  std::vector<Value> values;
  auto take = [&](ValueId id) {
    newId[static_cast<size_t>(id)] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[static_cast<size_t>(id)]));
  };
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].constant && live[i])
      take(static_cast<ValueId>(i));
  definitions(graph.body, [&](ValueId &id) {
    if (id == kNoValue)
      return;
    take(id);
    id = newId[static_cast<size_t>(id)];
  });
  uses(graph.body, [&](ValueId &id) {
    if (id != kNoValue)
      id = newId[static_cast<size_t>(id)];
  });
  graph.values = std::move(values);
}

} // namespace

Result<Graph> eliminateDeadCode(Graph graph, const GraphPassOptions &) {
  std::vector<bool> live(graph.values.size(), false);
  sweep(graph.body, live);
  computeCaptures(graph);
  renumber(graph, live);
  return graph;
}

} // namespace fusec

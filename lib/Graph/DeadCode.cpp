#include "Graph/Passes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

// Runs last in every list of passes: whatever a pass leaves unused goes here, nodes come in an order that a model's
// list of them has no part in, and the numbering becomes that of the text form, on which the equality of dumps rests.

namespace fusec {
namespace {

void collectUses(const Region &region, std::vector<ValueId> &uses);
void collectUses(const Node &node, std::vector<ValueId> &uses) {
  uses.insert(uses.end(), node.inputs.begin(), node.inputs.end());
  for (const Region &r : node.regions)
    collectUses(r, uses);
}
void collectUses(const Region &region, std::vector<ValueId> &uses) {
  for (const Node &n : region.nodes)
    collectUses(n, uses);
  uses.insert(uses.end(), region.outputs.begin(), region.outputs.end());
}

/// Values whose nodes give symbols their values, by symbol.
using Sizes = std::unordered_map<SymbolId, ValueId>;
/// The values among them whose symbols rules speak of, or that are tests of the data.
std::unordered_set<ValueId> testedSizes(const Graph &graph, const Sizes &sizes) {
  std::unordered_set<ValueId> tested;
  if (sizes.empty())
    return tested;
  for (const auto &[symbol, value] : sizes)
    if (graph.symbols[static_cast<size_t>(symbol)].testsData())
      tested.insert(value);
  for (const SizeRule &rule : graph.sizeRules.rules) {
    std::vector<SymbolId> used;
    rule.left.collectSymbols(used);
    rule.right.collectSymbols(used);
    for (SymbolId s : used)
      if (auto it = sizes.find(s); it != sizes.end())
        tested.insert(it->second);
  }
  return tested;
}
void collectSizes(const Graph &graph, const Region &region, Sizes &sizes) {
  for (const Node &n : region.nodes) {
    if (n.op == OpKind::DataSize)
      if (std::optional<SymbolId> symbol = sizedSymbol(graph, n))
        sizes.emplace(*symbol, n.outputs[0]);
    for (const Region &r : n.regions)
      collectSizes(graph, r, sizes);
  }
}

/// The values that tell the sizes of what a node reads and makes.
void collectSizes(const Graph &graph, const Sizes &sizes, const Node &node,
                  std::vector<ValueId> &uses) {
  for (const auto *ids : {&node.inputs, &node.outputs})
    for (ValueId id : *ids)
      if (id != kNoValue)
        for (SymbolId s : symbolsIn(graph.value(id)))
          if (auto it = sizes.find(s); it != sizes.end())
            uses.push_back(it->second);
  for (const Region &r : node.regions)
    for (const Node &n : r.nodes)
      collectSizes(graph, sizes, n, uses);
}

/// Marks what the outputs of a region and its sizes among `roots` need, erases the rest, and lists nodes behind those
/// that they need: the first output's first, of each node the first operand's first. Not by recursion: ten thousand
/// nodes may stand in a row.
void sweep(const Graph &graph, const Sizes &sizes, const std::unordered_set<ValueId> &roots,
           Region &region, std::vector<bool> &live) {
  std::unordered_map<ValueId, size_t> producers;
  for (size_t i = 0; i < region.nodes.size(); ++i)
    for (ValueId id : region.nodes[i].outputs)
      producers.emplace(id, i);
  struct Visit {
    size_t node;
    std::vector<ValueId> needs;
    size_t next = 0;
  };
  std::vector<Visit> open;
  std::vector<bool> seen(region.nodes.size(), false);
  auto need = [&](ValueId id) {
    if (id == kNoValue)
      return;
    live[static_cast<size_t>(id)] = true;
    auto it = producers.find(id);
    if (it == producers.end() || seen[it->second])
      return;
    seen[it->second] = true;
    Node &n = region.nodes[it->second];
    for (Region &r : n.regions)
      sweep(graph, sizes, roots, r, live);
    Visit visit{it->second, {}};
    if (!sizes.empty())
      collectSizes(graph, sizes, n, visit.needs);
    collectUses(n, visit.needs);
    open.push_back(std::move(visit));
  };
  std::vector<ValueId> needed;
  if (!roots.empty())
    for (const Node &n : region.nodes)
      if (n.op == OpKind::DataSize && roots.count(n.outputs[0]))
        needed.push_back(n.outputs[0]);
  needed.insert(needed.end(), region.outputs.begin(), region.outputs.end());
  std::vector<Node> kept;
  for (ValueId id : needed) {
    need(id);
    while (!open.empty()) {
      Visit &top = open.back();
      if (top.next < top.needs.size()) {
        need(top.needs[top.next++]);
        continue;
      }
      kept.push_back(std::move(region.nodes[top.node]));
      open.pop_back();
    }
  }
  region.nodes = std::move(kept);
}

/// Takes from each If the results that nothing reads, and from its branches that they hand them on; whether there are
/// any.
bool dropResults(Region &region, const std::vector<bool> &live) {
  bool found = false;
  for (Node &n : region.nodes) {
    for (Region &r : n.regions)
      found |= dropResults(r, live);
    if (n.op != OpKind::If)
      continue;
    auto isRead = [&](size_t i) {
      return n.hasOutput(i) && live[static_cast<size_t>(n.outputs[i])];
    };
    auto dropFrom = [&](std::vector<ValueId> &ids) {
      std::vector<ValueId> kept;
      for (size_t i = 0; i < ids.size(); ++i)
        if (isRead(i))
          kept.push_back(ids[i]);
      found |= kept.size() != ids.size();
      return kept;
    };
    for (Region &r : n.regions)
      r.outputs = dropFrom(r.outputs);
    n.outputs = dropFrom(n.outputs);
  }
  return found;
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
  std::vector<bool> live;
  do {
    live.assign(graph.values.size(), false);
    Sizes sizes;
    collectSizes(graph, graph.body, sizes);
    sweep(graph, sizes, testedSizes(graph, sizes), graph.body, live);
  } while (dropResults(graph.body, live));
  computeCaptures(graph);
  renumber(graph, live);
  return graph;
}

} // namespace fusec

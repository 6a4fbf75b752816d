#include "Graph/Passes.h"

#include <unordered_map>

// %c = Concat(%a, %b); %d = Concat(%c, %e)   becomes   %d = Concat(%a, %b, %e),
// which is lowered to copies of many operands at once: two thousand of them in a row, each with one operand more, are
// two layers of copies and not dozens, of which each copies all that the ones before it have put together. Where others
// read %c as well both stay: it exists in any case, and is one operand to read.

namespace fusec {
namespace {

class Merger {
public:
  explicit Merger(Graph &graph) : uses(graph.values.size(), 0) { count(graph.body); }

  void region(Region &r) {
    std::unordered_map<ValueId, size_t> inner; // Concats by what they make, those of this region
    for (size_t i = 0; i < r.nodes.size(); ++i)
      if (r.nodes[i].op == OpKind::Concat)
        inner.emplace(r.nodes[i].outputs[0], i);
    // The last of a row first: what it takes is left without readers, and each operand is moved once.
    for (size_t i = r.nodes.size(); i-- > 0;) {
      for (Region &below : r.nodes[i].regions)
        region(below);
      if (r.nodes[i].op == OpKind::Concat && uses[static_cast<size_t>(r.nodes[i].outputs[0])] > 0)
        merge(r, i, inner);
    }
  }

private:
  void count(const Region &r) {
    for (const Node &n : r.nodes) {
      for (ValueId id : n.inputs)
        if (id != kNoValue)
          ++uses[static_cast<size_t>(id)];
      for (const Region &below : n.regions)
        count(below);
    }
    for (ValueId id : r.outputs)
      ++uses[static_cast<size_t>(id)];
  }

  void merge(Region &r, size_t at, const std::unordered_map<ValueId, size_t> &inner) {
    std::vector<ValueId> operands;
    std::vector<ValueId> open(r.nodes[at].inputs.rbegin(), r.nodes[at].inputs.rend());
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const auto it = inner.find(id);
      if (it == inner.end() || uses[static_cast<size_t>(id)] != 1 ||
          r.nodes[it->second].intAttr("axis") != r.nodes[at].intAttr("axis")) {
        operands.push_back(id);
        continue;
      }
      --uses[static_cast<size_t>(id)];
      const std::vector<ValueId> &more = r.nodes[it->second].inputs;
      open.insert(open.end(), more.rbegin(), more.rend());
    }
    r.nodes[at].inputs = std::move(operands);
  }

  std::vector<int> uses; // by value, those of all regions
};

} // namespace

Result<Graph> mergeConcatenations(Graph graph, const GraphPassOptions &) {
  Merger(graph).region(graph.body);
  computeCaptures(graph);
  return graph;
}

} // namespace fusec

#include "Graph/Passes.h"

#include <algorithm>

// %y = Identity(%x); %z = Relu(%y)   becomes   %z = Relu(%x).
// Where %y is an output of the graph, its name must stay: the node that makes %x makes %y instead, unless %x is itself
// an input, a constant or an output.

namespace fusec {
namespace {

bool allEqual(const std::vector<int64_t> &list, int64_t v) {
  return std::all_of(list.begin(), list.end(), [&](int64_t x) { return x == v; });
}

/// Whether output 0 of `n` is its input 0, element for element.
bool isIdentity(const Graph &g, const Node &n) {
  if (n.outputs.size() != 1 || !n.hasInput(0))
    return false;
  const Value &in = g.value(n.inputs[0]), &out = g.value(n.outputs[0]);
  if (in.type != out.type || in.shape != out.shape)
    return false;
  switch (n.op) {
  case OpKind::Identity:
  case OpKind::Reshape:
  case OpKind::Flatten:
  case OpKind::Squeeze:
  case OpKind::Unsqueeze:
  case OpKind::Expand:
  case OpKind::Tile:
  case OpKind::Cast: return true;
  case OpKind::Concat:
  case OpKind::Sum:
  case OpKind::Max:
  case OpKind::Min:
  case OpKind::Mean: return n.inputs.size() == 1;
  case OpKind::Split: return true; // one part of full size
  case OpKind::Transpose: {
    const auto &perm = n.intsAttr("perm");
    return std::is_sorted(perm.begin(), perm.end());
  }
  case OpKind::Slice: return allEqual(n.intsAttr("steps"), 1) && allEqual(n.intsAttr("starts"), 0);
  case OpKind::Pad: return allEqual(n.intsAttr("pads"), 0);
  default: return false;
  }
}

class Eliminator {
public:
  explicit Eliminator(Graph &graph)
      : g(graph), replacement(graph.values.size(), kNoValue), isOutput(graph.values.size(), false),
        isMadeByBody(graph.values.size(), false) {
    for (ValueId id : g.body.outputs)
      isOutput[static_cast<size_t>(id)] = true;
  }

  void run() {
    region(g.body);
    for (ValueId &id : g.body.outputs)
      id = resolve(id);
  }

private:
  ValueId resolve(ValueId id) const {
    while (id != kNoValue && replacement[static_cast<size_t>(id)] != kNoValue)
      id = replacement[static_cast<size_t>(id)];
    return id;
  }

  /// Lets the producer of `from` make the graph output `to`; the names change places.
  bool takeOver(ValueId from, ValueId to) {
    const size_t at = static_cast<size_t>(from);
    if (!isMadeByBody[at] || isOutput[at])
      return false;
    std::swap(g.value(from).name, g.value(to).name);
    isOutput[at] = true;
    return true;
  }

  void region(Region &r) {
    std::vector<Node> nodes = std::move(r.nodes);
    r.nodes.clear();
    for (Node &n : nodes) {
      for (ValueId &id : n.inputs)
        id = resolve(id);
      if (isIdentity(g, n)) {
        ValueId from = n.inputs[0], to = n.outputs[0];
        if (!isOutput[static_cast<size_t>(to)] || takeOver(from, to)) {
          replacement[static_cast<size_t>(to)] = from;
          continue;
        }
      }
      for (Region &inner : n.regions)
        region(inner);
      if (&r == &g.body)
        for (ValueId id : n.outputs)
          if (id != kNoValue)
            isMadeByBody[static_cast<size_t>(id)] = true;
      r.nodes.push_back(std::move(n));
    }
    for (ValueId &id : r.outputs)
      id = resolve(id);
  }

  Graph &g;
  std::vector<ValueId> replacement;
  std::vector<bool> isOutput, isMadeByBody;
};

} // namespace

Result<Graph> eliminateIdentities(Graph graph, const GraphPassOptions &) {
  Eliminator(graph).run();
  computeCaptures(graph);
  return graph;
}

} // namespace fusec

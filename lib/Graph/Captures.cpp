#include "Graph/Passes.h"

#include <set>

namespace fusec {

ConstantRef constantOf(const Graph &graph, ValueId id) {
  return id == kNoValue ? nullptr : graph.value(id).constant;
}

/// Sets the captures of `region` and of those below it.
static void capture(const Graph &graph, Region &region) {
  std::set<ValueId> own(region.inputs.begin(), region.inputs.end()), outer;
  auto use = [&](ValueId id) {
    if (id != kNoValue && !graph.value(id).constant && !own.count(id))
      outer.insert(id);
  };
  for (Node &n : region.nodes) {
    for (ValueId id : n.inputs)
      use(id);
    for (Region &inner : n.regions) {
      capture(graph, inner);
      for (ValueId id : inner.captures)
        use(id);
    }
    for (ValueId id : n.outputs)
      own.insert(id);
  }
  for (ValueId id : region.outputs)
    use(id);
  region.captures.assign(outer.begin(), outer.end());
}

void computeCaptures(Graph &graph) {
  for (Node &n : graph.body.nodes)
    for (Region &r : n.regions)
      capture(graph, r);
}

} // namespace fusec

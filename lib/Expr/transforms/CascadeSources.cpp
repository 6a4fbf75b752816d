#include "Expr/transforms/CascadeSources.h"

#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {
namespace {

class Finder {
public:
  explicit Finder(const ExprProgram &program) : program(program) {}

  CascadePair run(const Equation &e) const {
    CascadePair pair;
    pair.value = valueOf(e, pair.body);
    findSources(e, pair);
    return pair;
  }

private:
  const Equation *producerOf(TensorId t) const {
    for (const Item &item : program.items)
      if (const auto *e = std::get_if<Equation>(&item.value))
        if (std::count(e->outputs.begin(), e->outputs.end(), t) != 0)
          return e;
    return nullptr;
  }

  /// Tensors that depend on a reduction's result by maps.
  std::set<TensorId> reduced() const {
    std::set<TensorId> out;
    for (const Item &item : program.items) {
      const auto *e = std::get_if<Equation>(&item.value);
      bool depends = e && e->kind == EquationKind::Reduction;
      if (e && e->kind == EquationKind::Map)
        for (NodeId id : e->body.reachable(e->results))
          depends = depends || (isRead(e->body[id]) && out.count(e->body[id].index) != 0);
      if (depends)
        out.insert(e->outputs.begin(), e->outputs.end());
    }
    return out;
  }

  Body emptyBody(const Equation &e) const {
    Body body;
    body.symbolTable = program.symbols;
    for (const Axis &a : e.axes)
      body.axisRanges.push_back(rangeOfExtent(a.extent, program.symbols));
    return body;
  }

  /// The reduction's value with all maps written into it that lie between it and other reductions.
  NodeId valueOf(const Equation &e, Body &body) const {
    const std::set<TensorId> dependent = reduced();
    body = emptyBody(e);
    NodeId value = body.import(e.body, e.results[0], nullptr);
    for (bool changed = true; changed && body.nodes.size() < kMostBodyNodes;) {
      changed = false;
      const Body old = std::move(body);
      body = emptyBody(e);
      value = body.import(old, value, [&](const Scalar &s, NodeId) -> NodeId {
        if (s.op != ScalarOp::Read || dependent.count(s.index) == 0)
          return kNoNode;
        const Equation *map = producerOf(s.index);
        if (!map || map->kind != EquationKind::Map)
          return kNoNode;
        changed = true;
        return inlineMap(body, *map, s);
      });
    }
    return value;
  }

  bool dependsOn(const Body &body, NodeId root, int firstAxis) const {
    for (NodeId id : body.reachable({root}))
      if (body[id].op == ScalarOp::Axis && body[id].index >= firstAxis)
        return true;
    return false;
  }

  /// Reduces over the same points as `e`, in the same type.
  bool alike(const Equation &e, const Equation &other) const {
    if (other.kind != EquationKind::Reduction || isArgMonoid(other.monoid) ||
        other.numReduction() != e.numReduction() || other.accumulateType != e.accumulateType)
      return false;
    for (TensorId t : other.outputs)
      if (program.tensors[t].type != e.accumulateType)
        return false;
    for (int r = 0; r < e.numReduction(); ++r)
      if (e.axes[e.numSpatial + r].extent != other.axes[other.numSpatial + r].extent)
        return false;
    return true;
  }

  /// The read takes row d from axis d, and there are no other rows.
  bool sameDomain(const Body &body, const Equation &e, const CascadeSource &source) const {
    bool same = e.numSpatial == source.equation->numSpatial;
    for (int d = 0; same && d < e.numSpatial; ++d) {
      const Scalar &index = body[source.indices[d]];
      same = e.axes[d].extent == source.equation->axes[d].extent &&
             (e.axes[d].extent.isConst(1) || (index.op == ScalarOp::Axis && index.index == d));
    }
    return same;
  }

  /// The reductions that the pair's value reads; none where something stands against it.
  void findSources(const Equation &e, CascadePair &pair) const {
    const Body &body = pair.body;
    std::vector<CascadeSource> sources;
    bool mixed = false;
    for (NodeId id : body.reachable({pair.value})) {
      const Scalar &s = body[id];
      const Equation *other = isRead(s) ? producerOf(s.index) : nullptr;
      if (!other || !alike(e, *other))
        continue;
      auto known = std::find_if(sources.begin(), sources.end(),
                                [&](const CascadeSource &k) { return k.equation == other; });
      bool own = s.op == ScalarOp::Read;
      for (NodeId index : s.args)
        own = own && !dependsOn(body, index, e.numSpatial);
      if (!own || (known != sources.end() && known->indices != s.args)) {
        mixed = true;
        continue;
      }
      if (known == sources.end())
        sources.push_back({other, s.args});
    }
    if (sources.empty())
      return;
    if (mixed) {
      pair.refusal = "reads a result at several rows or under a condition";
      return;
    }
    for (CascadeSource &s : sources)
      s.visible = sameDomain(body, e, s);
    std::stable_partition(sources.begin(), sources.end(),
                          [](const CascadeSource &s) { return !s.visible; });
    pair.sources = std::move(sources);
  }

  const ExprProgram &program;
};

} // namespace

CascadePair findSources(const ExprProgram &program, const Equation &reduction) {
  return Finder(program).run(reduction);
}

} // namespace fusec

// Repair of cascaded reductions: those that use the result of another one over the same points, so that these points
// have to be read twice. transforms/CascadeAlgebra.h says when that can be undone; this file finds the pairs and
// rewrites them.
//
//   reduction max [i:4; k:1000] max f32                reduction sum [i:4; k:1000] cascade f32
//     %m = %x[i, k]                                      %m = max %x[i, k]
//   map exp [i:4, k:1000]                                %s = sum exp(sub(%x[i, k], state(0)))
//     %e = exp(sub(%x[i, k], %m[i]))              ->     correct 1 = mul(part(1), exp(sub(part(0), state(0))))
//   reduction sum [i:4; k:1000] sum f32                map exp [i:4, k:1000]
//     %s = %e[i, k]                                      %e = exp(sub(%x[i, k], %m[i]))
//   map out [i:4, k:1000]                              map out [i:4, k:1000]
//     %y = div(%e[i, k], %s[i])                          %y = div(%e[i, k], %s[i])
//
// (guards against infinities left out). Maps between the two are written into the second, whatever else reads them. A
// chain becomes one cascade link by link. Where the second one has further spatial axes (attention's weighted sum of
// values), it carries the first one's states along and the first stays. Where a factor alone depends on the first, as
// in
//
//   %y = sum_k mul(mul(%x[i, k], %inverse[i]), %w[k, j])   ->   %t = sum_k mul(%x[i, k], %w[k, j])
//                                                               %y = mul(%t[i, j], %inverse[i])
//
// it waits for the end and both are plain reductions, of which neither uses the other.
//
// Not handled: reductions with other accumulation types than their results', reads of the first one at other rows
// than the own one's, conditional reads of it, integers and bools; those that find an index, which depends on how each
// element rounds: where x - r rounds to the same number for two elements, the first one wins although their x differ.
#include "Expr/Alternatives.h"
#include "Expr/Cascade.h"
#include "Expr/transforms/CascadeAlgebra.h"
#include "Expr/transforms/CascadeSources.h"
#include "Expr/transforms/Walk.h"
#include "Support/UniqueNames.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

constexpr size_t kMostStates =
    6; // each takes registers for itself, its old value and its partner's

class Repair {
public:
  Repair(const ExprProgram &from, std::vector<std::string> *refusals)
      : program(from), refusals(refusals) {}

  std::optional<ExprProgram> run() {
    bool changed = false;
    for (size_t i = 0; i < program.items.size(); ++i) {
      const auto *e = std::get_if<Equation>(&program.items[i].value);
      if (!e || e->kind != EquationKind::Reduction || e->monoid == Monoid::Cascade ||
          !repair(Equation(*e)))
        continue;
      changed = true;
      if (refusals)
        refusals->clear();
      i = SIZE_MAX; // from the start: the order has changed
    }
    if (!changed)
      return std::nullopt;
    dropUnneeded(program);
    return std::move(program);
  }

private:
  bool refuse(const Equation &e, const std::string &why) {
    if (refusals && !why.empty())
      refusals->push_back(e.name + ": " + why);
    return false;
  }

  bool repair(const Equation e) {
    for (const Axis &a : e.axes)
      if (a.extent.isConst(0))
        return false;
    if (program.tensors[e.outputs[0]].type != e.accumulateType)
      return false;
    CascadePair pair = findSources(program, e);
    std::vector<CascadeSource> &sources = pair.sources;
    Body &body = pair.body;
    if (sources.empty())
      return refuse(e, pair.refusal);
    if (isArgMonoid(e.monoid))
      return refuse(e, "finds an index, which the rounding of corrected elements could change");
    if (!isFloat(e.accumulateType))
      return refuse(e, "does not accumulate floats");
    Equation cascade = e;
    CascadedValue what{pair.value, e.monoid, e.numSpatial, DimExpr(1), e.accumulateType, {}, {}};
    for (int r = e.numSpatial; r < static_cast<int>(e.axes.size()); ++r)
      what.points = what.points * e.axes[r].extent;
    std::vector<CascadeState> states;
    std::vector<bool> visible;
    addStates(e, sources, body, what, states, visible);
    what.value = withStates(e, sources, body, pair.value);
    if (states.size() + 2 > kMostStates || body.nodes.size() > kMostBodyNodes)
      return refuse(e, "would be too large");
    const Separation found = separate(body, what);
    if (!found.refusal.empty())
      return refuse(e, found.refusal);
    cascade.body = std::move(body);
    cascade.results = {found.value};
    const TensorId folded = found.rest == kNoNode ? e.outputs[0] : newTemp(e.outputs[0]);
    cascade.outputs = {folded};
    if (found.correction != kNoNode)
      makeCascade(cascade, sources, what, states, visible, found);
    else
      cascade.states.clear();
    std::optional<Equation> last;
    if (found.rest != kNoNode)
      last = finish(e, sources, cascade.body, found, folded);
    compact(cascade);
    if (!place(e, std::move(cascade), std::move(last),
               found.correction != kNoNode ? sources : std::vector<CascadeSource>()))
      return refuse(e, "would need a pass that needs its own result first");
    return true;
  }

  /// Copies the sources' states into the body.
  void addStates(const Equation &e, std::vector<CascadeSource> &sources, Body &body,
                 CascadedValue &what, std::vector<CascadeState> &states,
                 std::vector<bool> &visible) const {
    for (CascadeSource &source : sources) {
      const Equation &from = *source.equation;
      source.firstState = static_cast<int>(states.size());
      auto copy = [&](NodeId root) {
        return body.import(from.body, root, [&](const Scalar &s, NodeId) -> NodeId {
          if (s.op == ScalarOp::Axis)
            return s.index < from.numSpatial ? source.indices[s.index]
                                             : body.axis(s.index - from.numSpatial + e.numSpatial);
          if (s.op == ScalarOp::State)
            return body.state(s.index + source.firstState, s.type);
          if (s.op == ScalarOp::Part)
            return body.part(s.index + source.firstState, s.type);
          return kNoNode;
        });
      };
      const size_t count = from.states.empty() ? 1 : from.states.size();
      for (size_t s = 0; s < count; ++s) {
        const CascadeState state =
            from.states.empty() ? CascadeState{from.monoid, kNoNode} : from.states[s];
        what.values.push_back(copy(from.results[s]));
        what.monoids.push_back(state.monoid);
        states.push_back(
            {state.monoid, state.correction == kNoNode ? kNoNode : copy(state.correction)});
        visible.push_back(source.visible && s + from.outputs.size() >= count);
      }
    }
  }

  /// The value with the sources' results as State leaves.
  NodeId withStates(const Equation &e, const std::vector<CascadeSource> &sources, Body &body,
                    NodeId value) const {
    const Body old = body;
    return body.import(old, value, [&](const Scalar &s, NodeId) -> NodeId {
      for (const CascadeSource &source : sources)
        for (size_t o = 0; s.op == ScalarOp::Read && o < source.equation->outputs.size(); ++o)
          if (source.equation->outputs[o] == s.index) {
            const size_t hidden =
                source.equation->states.empty()
                    ? 0
                    : source.equation->states.size() - source.equation->outputs.size();
            return body.state(source.firstState + static_cast<int>(hidden + o), e.accumulateType);
          }
      return kNoNode;
    });
  }

  /// Puts the states in order: those without an output, the count of points, those with one, the new one. Of the
  /// first kind only those stay that others use.
  void makeCascade(Equation &cascade, const std::vector<CascadeSource> &sources,
                   const CascadedValue &what, std::vector<CascadeState> states,
                   std::vector<bool> visible, const Separation &found) const {
    Body &body = cascade.body;
    std::vector<NodeId> values = what.values;
    if (found.counts) {
      values.push_back(body.constant(what.type, 1));
      states.push_back({Monoid::Sum, kNoNode});
      visible.push_back(false);
    }
    values.push_back(found.value);
    states.push_back({what.monoid, found.correction});
    visible.push_back(true);
    std::vector<bool> needed = visible;
    for (size_t s = states.size(); s-- > 0;)
      for (NodeId id : body.reachable({values[s], states[s].correction}))
        if (needed[s] && (body[id].op == ScalarOp::State || body[id].op == ScalarOp::Part))
          needed[static_cast<size_t>(body[id].index)] = true;
    std::vector<int> order, place(states.size());
    for (size_t s = 0; s < states.size(); ++s)
      if (needed[s])
        order.push_back(static_cast<int>(s));
    std::stable_partition(order.begin(), order.end(), [&](int s) { return !visible[s]; });
    for (size_t s = 0; s < order.size(); ++s)
      place[order[s]] = static_cast<int>(s);
    auto renumber = [&](NodeId root) {
      if (root == kNoNode)
        return root;
      const Body old = body;
      return body.import(old, root, [&](const Scalar &s, NodeId) -> NodeId {
        if (s.op == ScalarOp::State)
          return body.state(place[s.index], s.type);
        return s.op == ScalarOp::Part ? body.part(place[s.index], s.type) : kNoNode;
      });
    };
    cascade.monoid = Monoid::Cascade;
    cascade.results.clear();
    for (int s : order) {
      cascade.results.push_back(renumber(values[s]));
      cascade.states.push_back({states[s].monoid, renumber(states[s].correction)});
    }
    std::vector<TensorId> outputs;
    for (const CascadeSource &source : sources)
      if (source.visible) {
        outputs.insert(outputs.end(), source.equation->outputs.begin(),
                       source.equation->outputs.end());
        addNodes(cascade, *source.equation);
      }
    outputs.push_back(cascade.outputs[0]);
    cascade.outputs = std::move(outputs);
  }

  static void addNodes(Equation &to, const Equation &from) {
    UniqueNames nodes;
    nodes.add(from.onnxNodes);
    nodes.add(to.onnxNodes);
    to.onnxNodes = nodes.names();
  }

  TensorId newTemp(TensorId like) {
    Tensor t = program.tensors[like];
    t.kind = TensorKind::Temp;
    auto taken = [&](const std::string &name) {
      return std::any_of(program.tensors.begin(), program.tensors.end(),
                         [&](const Tensor &other) { return other.name == name; });
    };
    for (t.name += ".folded"; taken(t.name);)
      t.name += "_";
    return program.addTensor(std::move(t));
  }

  /// out = folded (finish) rest, at every point of the spatial domain.
  Equation finish(const Equation &e, const std::vector<CascadeSource> &sources, const Body &body,
                  const Separation &found, TensorId folded) const {
    Equation map;
    map.name = e.name + ".finish";
    map.onnxNodes = e.onnxNodes;
    map.axes.assign(e.axes.begin(), e.axes.begin() + e.numSpatial);
    map.numSpatial = e.numSpatial;
    map.outputs = e.outputs;
    setRanges(map, program.symbols);
    std::vector<NodeId> point;
    for (int d = 0; d < e.numSpatial; ++d)
      point.push_back(map.body.axis(d));
    const NodeId value = map.body.read(folded, e.accumulateType, point);
    const NodeId rest = map.body.import(body, found.rest, [&](const Scalar &s, NodeId) -> NodeId {
      if (s.op != ScalarOp::State)
        return kNoNode;
      for (const CascadeSource &source : sources) {
        const Equation &from = *source.equation;
        const int count = from.states.empty() ? 1 : static_cast<int>(from.states.size());
        const int output =
            s.index - source.firstState - (count - static_cast<int>(from.outputs.size()));
        if (s.index < source.firstState || s.index >= source.firstState + count)
          continue;
        std::vector<NodeId> at;
        for (NodeId index : source.indices)
          at.push_back(map.body.import(body, index, nullptr));
        return map.body.read(from.outputs[output], s.type, at);
      }
      return kNoNode;
    });
    map.results = {
        orIdentity(map.body, e, map.body.binary(found.finish, value, rest), program.symbols)};
    compact(map);
    return map;
  }

  /// Puts the new equations where `old` was, without what they replace, and everything behind what it reads. False, and
  /// nothing done, where there is no such order.
  bool place(const Equation &old, Equation made, std::optional<Equation> last,
             const std::vector<CascadeSource> &sources) {
    std::set<std::string> gone{old.name};
    for (const CascadeSource &source : sources)
      if (source.visible)
        gone.insert(source.equation->name);
    std::vector<Item> open;
    for (const Item &item : program.items) {
      const auto *e = std::get_if<Equation>(&item.value);
      if (e && e->name == old.name) {
        open.push_back({std::move(made)});
        if (last)
          open.push_back({std::move(*last)});
      } else if (!e || gone.count(e->name) == 0) {
        open.push_back(item);
      }
    }
    std::optional<std::vector<Item>> sorted = sortedByReads(std::move(open));
    if (sorted)
      program.items = std::move(*sorted);
    return sorted.has_value();
  }

  static std::optional<std::vector<Item>> sortedByReads(std::vector<Item> open) {
    std::vector<Item> sorted;
    std::set<TensorId> waiting;
    for (const Item &item : open)
      for (TensorId t : std::get<Equation>(item.value).outputs)
        waiting.insert(t);
    while (!open.empty()) {
      auto ready = std::find_if(open.begin(), open.end(), [&](const Item &item) {
        const auto &e = std::get<Equation>(item.value);
        for (NodeId id : e.body.reachable(bodyRoots(e)))
          if (isRead(e.body[id]) && waiting.count(e.body[id].index) != 0)
            return false;
        return true;
      });
      if (ready == open.end())
        return std::nullopt;
      for (TensorId t : std::get<Equation>(ready->value).outputs)
        waiting.erase(t);
      sorted.push_back(std::move(*ready));
      open.erase(ready);
    }
    return sorted;
  }

  ExprProgram program;
  std::vector<std::string> *refusals;
};

} // namespace

std::optional<ExprProgram> repairCascades(const ExprProgram &program,
                                          std::vector<std::string> *refusals) {
  int reductions = 0;
  for (const Item &item : program.items) {
    const auto *e = std::get_if<Equation>(&item.value);
    if (!e || (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction))
      return std::nullopt;
    reductions += e->kind == EquationKind::Reduction;
  }
  if (reductions < 2)
    return std::nullopt;
  return Repair(program, refusals).run();
}

} // namespace fusec

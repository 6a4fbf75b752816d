#include "Expr/transforms/Walk.h"

#include "Support/OptValues.h"

#include <algorithm>

namespace fusec {

void forEachEquation(std::vector<Item> &items,
                     const std::function<void(Equation &, const DimExpr *)> &visit) {
  for (Item &item : items) {
    if (auto *e = std::get_if<Equation>(&item.value)) {
      visit(*e, nullptr);
      for (Equation &inner : e->scanBody)
        visit(inner, &e->steps);
    } else {
      auto &c = std::get<Control>(item.value);
      forEachEquation(c.thenItems, visit);
      forEachEquation(c.elseItems, visit);
    }
  }
}

void forEachControl(std::vector<Item> &items, const std::function<void(Control &)> &visit) {
  for (Item &item : items)
    if (auto *c = std::get_if<Control>(&item.value)) {
      visit(*c);
      forEachControl(c->thenItems, visit);
      forEachControl(c->elseItems, visit);
    }
}

void forEachWholeUse(Equation &e, const std::function<void(TensorId &)> &use) {
  for (ScanCarry &c : e.carries) {
    use(c.init);
    use(c.next);
  }
  for (ScanOutput &o : e.scanOutputs)
    use(o.perStep);
  for (TensorId &id : e.opaqueInputs)
    use(id);
  if (e.base >= 0)
    use(e.base);
}

void forEachWholeUse(Control &c, const std::function<void(TensorId &)> &use) {
  for (TensorId *id : {&c.condition, &c.tripCount, &c.nextCondition})
    if (*id >= 0)
      use(*id);
  for (auto *list : {&c.thenYields, &c.elseYields, &c.carriedInit, &c.carriedOut})
    for (TensorId &id : *list)
      use(id);
}

void forEachTensor(Equation &e, const std::function<void(TensorId &)> &use) {
  for (Scalar &s : e.body.nodes)
    if (isRead(s))
      use(s.index);
  use(e.base);
  for (ScanCarry &c : e.carries)
    for (TensorId *id : {&c.init, &c.previous, &c.next, &c.final})
      use(*id);
  for (ScanOutput &o : e.scanOutputs)
    for (TensorId *id : {&o.perStep, &o.stacked})
      use(*id);
  for (TensorId &id : e.opaqueInputs)
    use(id);
}

std::vector<bool> wholeUses(ExprProgram &program) {
  std::vector<bool> whole(program.tensors.size());
  for (TensorId id : program.outputs)
    whole[id] = true;
  auto mark = [&](TensorId &id) { whole[id] = true; };
  forEachEquation(program.items, [&](Equation &e, const DimExpr *) { forEachWholeUse(e, mark); });
  forEachControl(program.items, [&](Control &c) { forEachWholeUse(c, mark); });
  return whole;
}

std::vector<uint64_t> axisDependences(const Body &body) {
  std::vector<uint64_t> out(body.nodes.size());
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const Scalar &s = body.nodes[i];
    if (s.op == ScalarOp::Axis)
      out[i] = uint64_t(1) << std::min(s.index, 63);
    for (NodeId a : s.args)
      out[i] |= out[a];
  }
  return out;
}

void rebuild(Equation &e, const std::vector<Symbol> &symbols, const DimExpr *steps,
             const std::function<NodeId(Body &, const Scalar &, NodeId)> &leaf) {
  Body old = std::move(e.body);
  e.body = Body();
  setRanges(e, symbols, steps);
  // One import for all roots keeps what they share.
  std::vector<NodeId> copy(old.nodes.size(), kNoNode);
  for (NodeId id : old.reachable(bodyRoots(e))) {
    Scalar s = old.nodes[id];
    for (NodeId &a : s.args)
      a = copy[a];
    bool asks = s.op == ScalarOp::Axis || s.op == ScalarOp::Step || isRead(s);
    NodeId replacement = asks && leaf ? leaf(e.body, s, id) : kNoNode;
    copy[id] = replacement != kNoNode ? replacement : e.body.add(std::move(s));
  }
  for (NodeId &r : e.results)
    r = copy[r];
  for (CascadeState &s : e.states)
    if (s.correction != kNoNode)
      s.correction = copy[s.correction];
  for (NodeId &r : e.scatterIndex)
    r = copy[r];
  if (e.scatterPredicate != kNoNode)
    e.scatterPredicate = copy[e.scatterPredicate];
  compact(e);
}

NodeId orIdentity(Body &body, const Equation &e, NodeId value, const std::vector<Symbol> &symbols) {
  DimExpr points = 1;
  for (size_t a = static_cast<size_t>(e.numSpatial); a < e.axes.size(); ++a)
    points = points * e.axes[a].extent;
  if (points.range(symbols).min >= 1)
    return value;
  return body.select(body.binary(ScalarOp::Lt, body.index(0), body.dim(points)), value,
                     identityOf(body, e.monoid, body[value].type));
}

double typicalElements(const Shape &shape, const std::vector<Symbol> &symbols) {
  const std::vector<int64_t> values = optValues(symbols);
  double count = 1;
  for (const DimExpr &d : shape)
    count *= static_cast<double>(d.evaluate(values).value_or(1));
  return count;
}

} // namespace fusec

#include "Expr/Rows.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <map>

namespace fusec {

namespace {

/// Index operand d of the read is axis d of the reader.
bool readsOwnRow(const Equation &reader, const Scalar &read, int d) {
  size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  if (first + d >= read.args.size())
    return false;
  const Scalar &index = reader.body[read.args[first + d]];
  return index.op == ScalarOp::Axis && index.index == d;
}

} // namespace

std::vector<int> commonRows(const std::vector<const Equation *> &equations) {
  std::map<TensorId, const Equation *> producers;
  int count = INT32_MAX;
  for (const Equation *e : equations) {
    if (e->kind != EquationKind::Map && e->kind != EquationKind::Reduction)
      return {};
    count = std::min(count, e->numSpatial);
    for (TensorId t : e->outputs)
      producers[t] = e;
  }
  std::vector<int> rows;
  for (int d = 0; d < count; ++d) {
    const DimExpr &extent = equations[0]->axes[d].extent;
    bool shared = !extent.isConst(1) &&
                  std::all_of(equations.begin(), equations.end(),
                              [&](const Equation *e) { return e->axes[d].extent == extent; });
    for (size_t i = 0; shared && i < equations.size(); ++i) {
      const Equation &e = *equations[i];
      for (NodeId id : e.body.reachable(bodyRoots(e)))
        if (isRead(e.body[id]) && producers.count(e.body[id].index) != 0)
          shared = shared && readsOwnRow(e, e.body[id], d);
    }
    if (shared)
      rows.push_back(d);
  }
  return rows;
}

std::string whyNotFinishing(const Equation &reduction, const Equation &map) {
  if (reduction.kind != EquationKind::Reduction)
    return reduction.name + " is no reduction";
  if (isTupleMonoid(reduction.monoid))
    return reduction.name + " gives several values, which no map finishes";
  if (map.kind != EquationKind::Map)
    return map.name + " is no map, and only a map finishes a reduction";
  bool same = reduction.numSpatial == map.numSpatial;
  for (int d = 0; same && d < map.numSpatial; ++d)
    same = reduction.axes[d].extent == map.axes[d].extent;
  if (!same)
    return map.name + " runs over another domain than " + reduction.name;
  bool reads = false;
  for (NodeId id : map.body.reachable(map.results)) {
    const Scalar &node = map.body[id];
    if (!isRead(node) || node.index != reduction.outputs[0])
      continue;
    reads = true;
    bool own = node.op == ScalarOp::Read;
    for (int d = 0; d < map.numSpatial; ++d) {
      bool single = map.axes[d].extent.isConst(1); // whose index is 0 without an axis
      own = own && (single || readsOwnRow(map, node, d));
    }
    if (!own)
      return map.name + " reads it at other points than its own";
  }
  return reads ? "" : map.name + " does not read " + reduction.name;
}

} // namespace fusec

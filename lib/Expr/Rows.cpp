#include "Expr/Rows.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

/// True if index d of a Read or ReadIf is axis d of its equation, alone.
static bool readsOwnRow(const Equation &reader, const Scalar &read, int d) {
  size_t first = read.op == ScalarOp::ReadIf ? 2 : 0;
  if (first + d >= read.args.size())
    return false;
  const Scalar &index = reader.body[read.args[first + d]];
  return index.op == ScalarOp::Axis && index.index == d;
}

RowFacts rowFacts(const Equation &equation) {
  RowFacts facts{&equation, {}};
  for (NodeId id : equation.body.reachable(bodyRoots(equation))) {
    const Scalar &read = equation.body[id];
    if (!isRead(read))
      continue;
    uint64_t own = 0;
    for (int d = 0; d < std::min(equation.numSpatial, 64); ++d)
      own |= uint64_t{readsOwnRow(equation, read, d)} << d;
    auto known = std::find_if(facts.ownRows.begin(), facts.ownRows.end(),
                              [&](const auto &other) { return other.first == read.index; });
    if (known == facts.ownRows.end())
      facts.ownRows.push_back({read.index, own});
    else
      known->second &= own;
  }
  return facts;
}

std::vector<int> commonRows(const std::vector<const RowFacts *> &group) {
  std::vector<TensorId> made;
  int count = 64;
  for (const RowFacts *facts : group) {
    const Equation &e = *facts->equation;
    if (e.kind != EquationKind::Map && e.kind != EquationKind::Reduction)
      return {};
    count = std::min(count, e.numSpatial);
    made.insert(made.end(), e.outputs.begin(), e.outputs.end());
  }
  std::sort(made.begin(), made.end());
  uint64_t own = ~uint64_t{0};
  for (const RowFacts *facts : group)
    for (const auto &[tensor, rows] : facts->ownRows)
      if (std::binary_search(made.begin(), made.end(), tensor))
        own &= rows;
  std::vector<int> rows;
  for (int d = 0; d < count; ++d) {
    const DimExpr &extent = group[0]->equation->axes[d].extent;
    if ((own >> d & 1) != 0 && !extent.isConst(1) &&
        std::all_of(group.begin(), group.end(), [&](const RowFacts *facts) {
          return facts->equation->axes[d].extent == extent;
        }))
      rows.push_back(d);
  }
  return rows;
}

std::vector<int> commonRows(const std::vector<const Equation *> &equations) {
  std::vector<RowFacts> facts;
  facts.reserve(equations.size());
  for (const Equation *e : equations)
    facts.push_back(rowFacts(*e));
  std::vector<const RowFacts *> group;
  for (const RowFacts &each : facts)
    group.push_back(&each);
  return commonRows(group);
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

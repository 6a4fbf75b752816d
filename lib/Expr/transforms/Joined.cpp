#include "Expr/transforms/Joined.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <set>

namespace fusec {

bool hasRead(const Body &body, NodeId id) {
  const std::vector<NodeId> nodes = body.reachable({id});
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId n) { return isRead(body[n]); });
}

namespace {

class Comparison {
public:
  Comparison(const Body &a, const Body &b) : a(a), b(b) {}

  bool alike(NodeId x, NodeId y) {
    if (known.count({x, y}) != 0)
      return true;
    const Scalar &s = a[x], &t = b[y];
    if (s.op != t.op || s.type != t.type || s.dim != t.dim)
      return false;
    if (s.op == ScalarOp::ReadIf)
      return !hasRead(a, s.args[0]) && !hasRead(a, s.args[1]) && !hasRead(b, t.args[0]) &&
             !hasRead(b, t.args[1]);
    if (s.op != ScalarOp::Read && s.op != ScalarOp::Const) {
      if (s.index != t.index || s.args.size() != t.args.size())
        return false;
      for (size_t i = 0; i < s.args.size(); ++i)
        if (!alike(s.args[i], t.args[i]))
          return false;
    }
    known.insert({x, y});
    return true;
  }

private:
  const Body &a, &b;
  std::set<std::pair<NodeId, NodeId>> known;
};

} // namespace

bool alike(const Body &a, NodeId x, const Body &b, NodeId y) {
  return Comparison(a, b).alike(x, y);
}

Joined::Joined(const std::vector<const Equation *> &members, const std::vector<Symbol> &symbols,
               int axis)
    : members(members), axis(axis) {
  equation = *members[0];
  equation.body = Body();
  int64_t end = 0;
  for (const Equation *member : members) {
    starts.push_back(end);
    end += member->axes[axis].extent.constValue();
  }
  starts.push_back(end);
  equation.axes[axis].extent = DimExpr(end);
  setRanges(equation, symbols);
  std::vector<NodeId> roots;
  for (const Equation *member : members)
    roots.push_back(member->results[0]);
  equation.results = {merged(roots)};
  compact(equation);
  for (const Scalar &s : equation.body.nodes)
    choices += s.op == ScalarOp::ReadIf || s.op == ScalarOp::Select;
}

NodeId Joined::shifted(size_t p, NodeId id) {
  Body &body = equation.body;
  return body.import(members[p]->body, id, [&](const Scalar &s, NodeId) {
    return s.op == ScalarOp::Axis && s.index == axis
               ? body.binary(ScalarOp::Sub, body.axis(axis), body.index(starts[p]))
               : kNoNode;
  });
}

NodeId Joined::inside(size_t p) {
  Body &body = equation.body;
  NodeId within = kNoNode;
  if (p > 0)
    within = body.binary(ScalarOp::Lt, body.index(starts[p] - 1), body.axis(axis));
  if (p + 1 < members.size())
    within = body.logicalAnd(within,
                             body.binary(ScalarOp::Lt, body.axis(axis), body.index(starts[p + 1])));
  return within;
}

/// The value of node at[p] of each member p in its part.
NodeId Joined::merged(const std::vector<NodeId> &at) {
  if (auto it = known.find(at); it != known.end())
    return it->second;
  std::vector<NodeId> values;
  for (size_t p = 0; p < at.size(); ++p)
    values.push_back(shifted(p, at[p]));
  if (std::all_of(values.begin(), values.end(), [&](NodeId v) { return v == values[0]; }))
    return known[at] = values[0];
  Scalar s = members[0]->body[at[0]];
  if (isRead(s) || s.op == ScalarOp::Const || s.op == ScalarOp::Axis)
    return known[at] = chosen(at, values);
  for (size_t i = 0; i < s.args.size(); ++i) {
    std::vector<NodeId> arguments;
    for (size_t p = 0; p < at.size(); ++p)
      arguments.push_back(members[p]->body[at[p]].args[i]);
    s.args[i] = merged(arguments);
  }
  return known[at] = equation.body.add(std::move(s));
}

/// Leaves that differ: a member's own is read in its part alone.
NodeId Joined::chosen(const std::vector<NodeId> &at, const std::vector<NodeId> &values) {
  Body &body = equation.body;
  const DType type = members[0]->body[at[0]].type;
  NodeId rest = kNoNode;
  for (size_t p = at.size(); p-- > 0;) {
    const Scalar &s = members[p]->body[at[p]];
    if (!isRead(s)) {
      rest = rest == kNoNode ? values[p] : body.select(inside(p), values[p], rest);
      continue;
    }
    const bool guarded = s.op == ScalarOp::ReadIf;
    std::vector<NodeId> indices;
    for (size_t i = guarded ? 2 : 0; i < s.args.size(); ++i)
      indices.push_back(shifted(p, s.args[i]));
    if (!guarded) {
      rest = body.readIf(s.index, type, inside(p),
                         rest == kNoNode ? body.constantInt(type, 0) : rest, indices);
      continue;
    }
    const NodeId value =
        body.readIf(s.index, type, body.logicalAnd(inside(p), shifted(p, s.args[0])),
                    shifted(p, s.args[1]), indices);
    rest = rest == kNoNode ? value : body.select(inside(p), value, rest);
  }
  return rest;
}

} // namespace fusec

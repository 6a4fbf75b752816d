#include "Expr/Body.h"

#include "Expr/ScalarEval.h"
#include "Expr/ScalarRules.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

namespace fusec {
namespace {

struct OpRow {
  std::string_view mnemonic;
  int arity;
};
constexpr OpRow kOps[] = {
#define FUSEC_SCALAR_OP(name, mnemonic, arity) {mnemonic, arity},
#include "Expr/ScalarOps.def"
};

bool equal(const Scalar &a, const Scalar &b) {
  return a.op == b.op && a.type == b.type && a.index == b.index && a.imm == b.imm &&
         a.args == b.args && sameBits(a.fimm, b.fimm) && (a.op != ScalarOp::Dim || a.dim == b.dim);
}

size_t hashOf(const Scalar &s) {
  size_t h = static_cast<size_t>(s.op) * 31 + static_cast<size_t>(s.type);
  auto mix = [&](size_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); };
  for (NodeId a : s.args)
    mix(static_cast<size_t>(a));
  mix(static_cast<size_t>(s.index));
  mix(static_cast<size_t>(s.imm));
  mix(std::bit_cast<size_t>(s.fimm));
  if (s.op == ScalarOp::Dim)
    mix(s.dim.hash());
  return h ^ (h >> 32);
}

} // namespace

std::string_view mnemonic(ScalarOp op) { return kOps[static_cast<int>(op)].mnemonic; }
int arity(ScalarOp op) { return kOps[static_cast<int>(op)].arity; }

void Body::rehash() {
  size_t capacity = 16;
  while (capacity < nodes.size() * 2 + 2)
    capacity *= 2;
  slots.assign(capacity, kNoNode);
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id) {
    size_t at = hashOf(nodes[id]) & (capacity - 1);
    while (slots[at] != kNoNode)
      at = (at + 1) & (capacity - 1);
    slots[at] = id;
  }
  hashedNodes = nodes.size();
}

NodeId Body::addExact(Scalar s) {
  assert(std::all_of(s.args.begin(), s.args.end(),
                     [&](NodeId a) { return a >= 0 && a < static_cast<NodeId>(nodes.size()); }));
  if (hashedNodes != nodes.size() || slots.size() < nodes.size() * 2 + 2)
    rehash();
  size_t mask = slots.size() - 1, at = hashOf(s) & mask;
  for (; slots[at] != kNoNode; at = (at + 1) & mask)
    if (equal(nodes[slots[at]], s))
      return slots[at];
  slots[at] = static_cast<NodeId>(nodes.size());
  nodes.push_back(std::move(s));
  ++hashedNodes;
  return slots[at];
}

NodeId Body::find(const Scalar &s) const {
  if (slots.empty())
    return kNoNode;
  for (size_t mask = slots.size() - 1, at = hashOf(s) & mask; slots[at] != kNoNode;
       at = (at + 1) & mask)
    if (equal(nodes[slots[at]], s))
      return slots[at];
  return kNoNode;
}

NodeId Body::add(Scalar s) {
  NodeId simpler = simplifyScalar(*this, s);
  return simpler != kNoNode ? simpler : addExact(std::move(s));
}

NodeId Body::constant(DType t, double v) {
  if (!isFloat(t))
    return constantInt(t, static_cast<int64_t>(v));
  double value = std::isnan(v) ? std::numeric_limits<double>::quiet_NaN() : roundToType(t, v);
  return addExact({ScalarOp::Const, t, {}, 0, 0, value, 0});
}

NodeId Body::constantInt(DType t, int64_t v) {
  if (isFloat(t))
    return constant(t, static_cast<double>(v));
  return addExact({ScalarOp::Const, t, {}, 0, wrapToType(t, v), 0, 0});
}

NodeId Body::axis(int32_t a) { return addExact({ScalarOp::Axis, DType::I64, {}, a, 0, 0, 0}); }
NodeId Body::step() { return addExact({ScalarOp::Step, DType::I64, {}, 0, 0, 0, 0}); }
NodeId Body::state(int32_t s, DType t) { return addExact({ScalarOp::State, t, {}, s, 0, 0, 0}); }
NodeId Body::part(int32_t s, DType t) { return addExact({ScalarOp::Part, t, {}, s, 0, 0, 0}); }

NodeId Body::dim(const DimExpr &d) {
  if (d.isConst())
    return index(d.constValue());
  return addExact({ScalarOp::Dim, DType::I64, {}, 0, 0, 0, d});
}

NodeId Body::read(int32_t tensor, DType t, std::vector<NodeId> indices) {
  return add({ScalarOp::Read, t, std::move(indices), tensor, 0, 0, 0});
}

NodeId Body::readIf(int32_t tensor, DType t, NodeId predicate, NodeId otherwise,
                    std::vector<NodeId> indices) {
  if (predicate == kNoNode)
    return read(tensor, t, std::move(indices));
  indices.insert(indices.begin(), {predicate, otherwise});
  return add({ScalarOp::ReadIf, t, std::move(indices), tensor, 0, 0, 0});
}

NodeId Body::unary(ScalarOp op, NodeId a) {
  bool test = op == ScalarOp::IsNan || op == ScalarOp::IsInf;
  return add({op, test ? DType::Bool : nodes[a].type, {a}, 0, 0, 0, 0});
}

NodeId Body::binary(ScalarOp op, NodeId a, NodeId b) {
  assert(nodes[a].type == nodes[b].type);
  bool comparison =
      op == ScalarOp::Eq || op == ScalarOp::Ne || op == ScalarOp::Lt || op == ScalarOp::Le;
  return add({op, comparison ? DType::Bool : nodes[a].type, {a, b}, 0, 0, 0, 0});
}

NodeId Body::fma(NodeId a, NodeId b, NodeId c) {
  return add({ScalarOp::Fma, nodes[a].type, {a, b, c}, 0, 0, 0, 0});
}

NodeId Body::select(NodeId predicate, NodeId then, NodeId otherwise) {
  assert(nodes[then].type == nodes[otherwise].type);
  return add({ScalarOp::Select, nodes[then].type, {predicate, then, otherwise}, 0, 0, 0, 0});
}

NodeId Body::cast(DType to, NodeId a) { return add({ScalarOp::Cast, to, {a}, 0, 0, 0, 0}); }
NodeId Body::castSat(DType to, NodeId a) { return add({ScalarOp::CastSat, to, {a}, 0, 0, 0, 0}); }

NodeId Body::logicalAnd(NodeId a, NodeId b) {
  if (a == kNoNode || b == kNoNode)
    return a == kNoNode ? b : a;
  NodeId r = binary(ScalarOp::And, a, b);
  return nodes[r].op == ScalarOp::Const && nodes[r].imm ? kNoNode : r;
}

NodeId Body::import(const Body &from, NodeId root,
                    const std::function<NodeId(const Scalar &copied, NodeId original)> &leaf) {
  std::vector<NodeId> copy(static_cast<size_t>(root) + 1, kNoNode);
  for (NodeId id : from.reachable({root})) {
    Scalar s = from.nodes[id];
    for (NodeId &a : s.args)
      a = copy[a];
    bool asks = s.op == ScalarOp::Axis || s.op == ScalarOp::Step || s.op == ScalarOp::State ||
                s.op == ScalarOp::Part || s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf;
    NodeId replacement = asks && leaf ? leaf(s, id) : kNoNode;
    copy[id] = replacement != kNoNode ? replacement : add(std::move(s));
  }
  return copy[root];
}

/// The nodes that a few roots need, the last one first. Visits no others, since the body has many.
static std::vector<NodeId> reachableInMany(const std::vector<Scalar> &nodes,
                                           const std::vector<NodeId> &roots) {
  std::vector<NodeId> heap, out;
  auto add = [&](NodeId id) {
    if (id == kNoNode)
      return;
    heap.push_back(id);
    std::push_heap(heap.begin(), heap.end());
  };
  for (NodeId r : roots)
    add(r);
  while (!heap.empty()) {
    const NodeId id = heap.front();
    while (!heap.empty() && heap.front() == id) {
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    out.push_back(id);
    for (NodeId a : nodes[id].args)
      add(a);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<NodeId> Body::reachable(const std::vector<NodeId> &roots) const {
  // Asked all the time, of bodies of few nodes or for few of many: flags on the stack.
  constexpr size_t kFew = 512;
  if (nodes.size() > kFew && roots.size() < kFew)
    return reachableInMany(nodes, roots);
  std::array<bool, kFew> few{};
  const std::unique_ptr<bool[]> many(nodes.size() > kFew ? new bool[nodes.size()]() : nullptr);
  bool *used = many ? many.get() : few.data();
  NodeId last = kNoNode;
  for (NodeId r : roots)
    if (r != kNoNode) {
      used[r] = true;
      last = std::max(last, r);
    }
  size_t count = 0;
  for (NodeId id = last; id >= 0; --id)
    if (used[id]) {
      ++count;
      for (NodeId a : nodes[id].args)
        used[a] = true;
    }
  std::vector<NodeId> out;
  out.reserve(count);
  for (NodeId id = 0; id <= last; ++id)
    if (used[id])
      out.push_back(id);
  return out;
}

std::vector<bool> Body::neededBeside(const std::vector<NodeId> &atHand,
                                     const std::vector<NodeId> &roots) const {
  std::vector<bool> needed(nodes.size());
  for (NodeId root : roots)
    if (root != kNoNode)
      needed[root] = true;
  for (auto id = static_cast<NodeId>(nodes.size()); id-- > 0;)
    if (needed[id] && std::find(atHand.begin(), atHand.end(), id) == atHand.end())
      for (NodeId arg : nodes[id].args)
        needed[arg] = true;
  return needed;
}

std::optional<AffineForm> affineForm(const Body &body, NodeId id, int numAxes) {
  AffineForm form;
  form.coefficients.assign(static_cast<size_t>(numAxes), DimExpr(0));
  struct Part {
    NodeId node;
    DimExpr factor;
  };
  std::vector<Part> open{{id, 1}};
  bool hasRest = false;
  while (!open.empty()) {
    auto [node, factor] = open.back();
    open.pop_back();
    const Scalar &s = body[node];
    auto fixed = [&](NodeId n) -> std::optional<DimExpr> {
      const Scalar &c = body[n];
      if (c.op == ScalarOp::Const)
        return DimExpr(c.imm);
      return c.op == ScalarOp::Dim ? std::optional(c.dim) : std::nullopt;
    };
    switch (s.op) {
    case ScalarOp::Const: form.constant = form.constant + factor * s.imm; continue;
    case ScalarOp::Dim: form.constant = form.constant + factor * s.dim; continue;
    case ScalarOp::Axis:
      if (s.index >= numAxes)
        return std::nullopt;
      form.coefficients[s.index] = form.coefficients[s.index] + factor;
      continue;
    case ScalarOp::Add:
    case ScalarOp::Sub:
      open.push_back({s.args[1], s.op == ScalarOp::Add ? factor : factor * DimExpr(-1)});
      open.push_back({s.args[0], factor});
      continue;
    case ScalarOp::Neg: open.push_back({s.args[0], factor * DimExpr(-1)}); continue;
    case ScalarOp::Mul:
      if (auto c = fixed(s.args[1])) {
        open.push_back({s.args[0], factor * *c});
        continue;
      }
      if (auto c = fixed(s.args[0])) {
        open.push_back({s.args[1], factor * *c});
        continue;
      }
      break;
    default: break;
    }
    // An atom may stay as the rest when no axis is below it and it stands alone with factor one.
    for (NodeId n : body.reachable({node}))
      if (body[n].op == ScalarOp::Axis)
        return std::nullopt;
    if (hasRest || !factor.isConst(1))
      return std::nullopt;
    hasRest = true;
    form.rest = node;
  }
  return form;
}

} // namespace fusec

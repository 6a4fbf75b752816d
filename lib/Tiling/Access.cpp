#include "Tiling/Access.h"

#include <algorithm>

namespace fusec {

const Equation *scanOf(const ExprProgram &pattern) {
  if (pattern.items.size() != 1)
    return nullptr;
  const auto *equation = std::get_if<Equation>(&pattern.items[0].value);
  return equation && equation->kind == EquationKind::Scan ? equation : nullptr;
}

std::vector<const Equation *> scheduledEquations(const ExprProgram &pattern) {
  std::vector<const Equation *> out;
  if (const Equation *scan = scanOf(pattern)) {
    for (const Equation &e : scan->scanBody)
      out.push_back(&e);
    return out;
  }
  for (const Item &item : pattern.items)
    out.push_back(&std::get<Equation>(item.value));
  return out;
}

std::vector<NodeId> rootsOf(const Equation &equation) { return bodyRoots(equation); }

std::vector<NodeId> readsOf(const Equation &equation) {
  std::vector<NodeId> out;
  for (NodeId id : equation.body.reachable(rootsOf(equation))) {
    ScalarOp op = equation.body[id].op;
    if (op == ScalarOp::Read || op == ScalarOp::ReadIf)
      out.push_back(id);
  }
  return out;
}

std::vector<DimExpr> stridesOf(const Shape &shape) {
  std::vector<DimExpr> strides(shape.size());
  DimExpr running(1);
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = running;
    running = running * shape[d];
  }
  return strides;
}

std::vector<NodeId> indexOperands(const Scalar &read) {
  auto begin = read.args.begin() + (read.op == ScalarOp::ReadIf ? 2 : 0);
  return {begin, read.args.end()};
}

std::optional<FlatAccess> flatAccess(const Equation &equation, NodeId read,
                                     const ExprProgram &program) {
  const Scalar &node = equation.body[read];
  std::vector<DimExpr> strides = stridesOf(program.tensors[node.index].shape);
  int numAxes = static_cast<int>(equation.axes.size());
  FlatAccess out;
  out.stride.assign(numAxes, DimExpr(0));
  std::vector<NodeId> indices = indexOperands(node);
  for (size_t d = 0; d < indices.size(); ++d) {
    std::optional<AffineForm> form = affineForm(equation.body, indices[d], numAxes);
    if (!form)
      return std::nullopt;
    for (int a = 0; a < numAxes; ++a)
      if (!form->coefficients[a].isConst(0))
        out.stride[a] = out.stride[a] + form->coefficients[a] * strides[d];
    out.constant = out.constant + form->constant * strides[d];
    if (form->rest != kNoNode)
      out.rests.push_back({form->rest, strides[d]});
  }
  return out;
}

std::vector<uint64_t> axisDependences(const Body &body, NodeId last) {
  std::vector<uint64_t> masks(static_cast<size_t>(last) + 1, 0);
  for (NodeId id = 0; id <= last; ++id) {
    if (body[id].op == ScalarOp::Axis)
      masks[id] = uint64_t{1} << body[id].index;
    for (NodeId arg : body[id].args)
      masks[id] |= masks[arg];
  }
  return masks;
}

uint64_t axisDependence(const Body &body, NodeId id) { return axisDependences(body, id).back(); }

namespace {

/// The dimension d for which `value` - index[d] is a constant, and that constant.
std::optional<std::pair<size_t, DimExpr>> matchIndex(const std::vector<AffineForm> &indices,
                                                     const AffineForm &value) {
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d].rest == value.rest && indices[d].coefficients == value.coefficients)
      return std::pair{d, value.constant - indices[d].constant};
  return std::nullopt;
}

bool isAxisFree(const AffineForm &form) {
  return form.rest == kNoNode && std::all_of(form.coefficients.begin(), form.coefficients.end(),
                                             [](const DimExpr &c) { return c.isConst(0); });
}

void collectConjuncts(const Body &body, NodeId id, std::vector<NodeId> &out) {
  const Scalar &node = body[id];
  if (node.op == ScalarOp::And) {
    collectConjuncts(body, node.args[0], out);
    collectConjuncts(body, node.args[1], out);
    return;
  }
  out.push_back(id);
}

} // namespace

std::optional<std::vector<IndexBounds>> paddingBounds(const Equation &equation, NodeId readIf,
                                                      const ExprProgram &program) {
  const Body &body = equation.body;
  const Scalar &node = body[readIf];
  const Shape &shape = program.tensors[node.index].shape;
  int numAxes = static_cast<int>(equation.axes.size());
  if (body[node.args[1]].op != ScalarOp::Const) // another tensor beyond the bounds: a concatenation
    return std::nullopt;
  std::vector<AffineForm> indices;
  for (NodeId id : indexOperands(node)) {
    std::optional<AffineForm> form = affineForm(body, id, numAxes);
    if (!form)
      return std::nullopt;
    indices.push_back(*form);
  }
  std::vector<IndexBounds> bounds;
  for (const DimExpr &extent : shape)
    bounds.push_back({DimExpr(0), extent - DimExpr(1)});
  std::vector<NodeId> conjuncts;
  collectConjuncts(body, node.args[0], conjuncts);
  for (NodeId id : conjuncts) {
    const Scalar &test = body[id];
    if (test.op != ScalarOp::Le && test.op != ScalarOp::Lt)
      return std::nullopt;
    std::optional<AffineForm> left = affineForm(body, test.args[0], numAxes);
    std::optional<AffineForm> right = affineForm(body, test.args[1], numAxes);
    if (!left || !right)
      return std::nullopt;
    DimExpr strict(test.op == ScalarOp::Lt ? 1 : 0);
    if (isAxisFree(*left)) { // left + strict <= index[d] + offset
      auto match = matchIndex(indices, *right);
      if (!match)
        return std::nullopt;
      IndexBounds &b = bounds[match->first];
      b.lower = max(b.lower, left->constant + strict - match->second);
    } else if (isAxisFree(*right)) { // index[d] + offset <= right - strict
      auto match = matchIndex(indices, *left);
      if (!match)
        return std::nullopt;
      IndexBounds &b = bounds[match->first];
      b.upper = min(b.upper, right->constant - strict - match->second);
    } else {
      return std::nullopt;
    }
  }
  return bounds;
}

} // namespace fusec

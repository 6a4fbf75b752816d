#include "Expr/Padding.h"

#include <algorithm>

namespace fusec {

std::vector<NodeId> indexOperands(const Scalar &read) {
  auto begin = read.args.begin() + (read.op == ScalarOp::ReadIf ? 2 : 0);
  return {begin, read.args.end()};
}

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
      const DimExpr most = right->constant - strict - match->second;
      b.upper = min(b.upper, most);
      b.testsUpper = b.testsUpper || b.upper == most;
    } else {
      return std::nullopt;
    }
  }
  return bounds;
}

uint64_t axesThatPaddingBounds(const Equation &equation, NodeId readIf,
                               const ExprProgram &program) {
  const auto bounds = paddingBounds(equation, readIf, program);
  if (!bounds)
    return 0;
  const int numAxes = static_cast<int>(equation.axes.size());
  uint64_t rising = 0, others = 0;
  const std::vector<NodeId> indices = indexOperands(equation.body[readIf]);
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<AffineForm> form = affineForm(equation.body, indices[d], numAxes);
    for (int a = 0; a < numAxes; ++a) {
      const DimExpr &step = form->coefficients[static_cast<size_t>(a)];
      if (step.isConst(0))
        continue;
      const bool rises = step.isConst() && step.constValue() > 0 && (*bounds)[d].testsUpper;
      (rises ? rising : others) |= uint64_t{1} << a;
    }
  }
  return rising & ~others;
}

} // namespace fusec

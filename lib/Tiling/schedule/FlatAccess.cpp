#include "Tiling/schedule/FlatAccess.h"

#include <ranges>

namespace fusec {

std::vector<NodeId> readsOf(const Equation &equation) {
  std::vector<NodeId> out;
  for (NodeId id : equation.body.reachable(bodyRoots(equation))) {
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

/// Whether the node is that size.
static bool isSize(const Body &body, NodeId node, const DimExpr &size) {
  const Scalar &s = body[node];
  return s.op == ScalarOp::Const ? size.isConst(s.imm) : s.op == ScalarOp::Dim && s.dim == size;
}

/// Dimensions whose indices are the digits of one number: of [.., h, w]
///   [floordiv(v, h*w), floormod(floordiv(v, w), h), floormod(v, w)]
struct Digits {
  NodeId number;
  size_t dimensions;
};
/// The digits that end with dimension `last`; nullopt where there are none.
static std::optional<Digits> digitsEndingAt(const Body &body, const std::vector<NodeId> &indices,
                                            const Shape &shape, size_t last) {
  const Scalar &lowest = body[indices[last]];
  if (lowest.op != ScalarOp::FloorMod || !isSize(body, lowest.args[1], shape[last]))
    return std::nullopt;
  const NodeId number = lowest.args[0];
  DimExpr below = shape[last];
  for (size_t d = last; d-- > 0; below = below * shape[d]) {
    const Scalar *digit = &body[indices[d]];
    const bool isInner = digit->op == ScalarOp::FloorMod;
    if (isInner && !isSize(body, digit->args[1], shape[d]))
      return std::nullopt;
    if (isInner)
      digit = &body[digit->args[0]];
    if (digit->op != ScalarOp::FloorDiv || digit->args[0] != number ||
        !isSize(body, digit->args[1], below))
      return std::nullopt;
    if (!isInner)
      return Digits{number, last - d + 1};
  }
  return std::nullopt;
}

std::optional<FlatAccess> flatAccess(const Equation &equation, NodeId read,
                                     const ExprProgram &program) {
  const Scalar &node = equation.body[read];
  const Shape &shape = program.tensors[node.index].shape;
  std::vector<DimExpr> strides = stridesOf(shape);
  int numAxes = static_cast<int>(equation.axes.size());
  FlatAccess out;
  out.stride.assign(numAxes, DimExpr(0));
  std::vector<NodeId> indices = indexOperands(node);
  std::vector<std::pair<NodeId, DimExpr>> steps; // an index and its stride
  for (size_t d = indices.size(); d-- > 0;) {
    const auto digits = digitsEndingAt(equation.body, indices, shape, d);
    steps.emplace_back(digits ? digits->number : indices[d], strides[d]);
    d -= digits ? digits->dimensions - 1 : 0;
  }
  for (const auto &[index, stride] : std::views::reverse(steps)) {
    std::optional<AffineForm> form = affineForm(equation.body, index, numAxes);
    if (!form)
      return std::nullopt;
    for (int a = 0; a < numAxes; ++a)
      if (!form->coefficients[a].isConst(0))
        out.stride[a] = out.stride[a] + form->coefficients[a] * stride;
    out.constant = out.constant + form->constant * stride;
    if (form->rest != kNoNode)
      out.rests.push_back({form->rest, stride});
  }
  return out;
}

namespace {

class DigitTerms {
public:
  explicit DigitTerms(const Body &body) : body(body) {}

  std::vector<DigitTerm> terms;

  /// False where the node is no such sum.
  bool add(NodeId id, const DimExpr &stride) {
    const Scalar &s = body[id];
    if (--left < 0) // a sum of sums may name a node any number of times
      return false;
    switch (s.op) {
    case ScalarOp::Axis: terms.push_back({s.index, 1, 0, stride}); return true;
    case ScalarOp::Add:
    case ScalarOp::Sub: return add(s.args[0], stride) && add(s.args[1], stride);
    case ScalarOp::Mul:
      for (const int factor : {0, 1})
        if (const std::optional<DimExpr> size = sizeOf(s.args[factor]))
          return add(s.args[1 - factor], stride * *size);
      return false;
    case ScalarOp::FloorDiv:
    case ScalarOp::FloorMod: return addDigit(id, stride);
    default: return axisDependence(body, id) == 0;
    }
  }

private:
  std::optional<DimExpr> sizeOf(NodeId id) const {
    const Scalar &s = body[id];
    if (s.op == ScalarOp::Const)
      return DimExpr(s.imm);
    return s.op == ScalarOp::Dim ? std::optional(s.dim) : std::nullopt;
  }

  bool addDigit(NodeId id, const DimExpr &stride) {
    DigitTerm term{-1, 1, 0, stride};
    for (const ScalarOp op : {ScalarOp::FloorMod, ScalarOp::FloorDiv}) {
      const Scalar &s = body[id];
      if (s.op != op)
        continue;
      const Scalar &by = body[s.args[1]];
      if (by.op != ScalarOp::Const || by.imm < 1)
        return false;
      (op == ScalarOp::FloorMod ? term.modulus : term.divisor) = by.imm;
      id = s.args[0];
    }
    if (body[id].op != ScalarOp::Axis)
      return axisDependence(body, id) == 0;
    term.axis = body[id].index;
    terms.push_back(std::move(term));
    return true;
  }

  const Body &body;
  int left = 64; // nodes that are looked at
};

} // namespace

std::optional<std::vector<DigitTerm>> digitTerms(const Equation &equation, NodeId read,
                                                 const ExprProgram &program) {
  const Scalar &node = equation.body[read];
  const std::vector<DimExpr> strides = stridesOf(program.tensors[node.index].shape);
  const std::vector<NodeId> indices = indexOperands(node);
  DigitTerms sum(equation.body);
  for (size_t d = 0; d < indices.size(); ++d)
    if (!sum.add(indices[d], strides[d]))
      return std::nullopt;
  return std::move(sum.terms);
}

FlatAccess outputAccess(const Equation &equation, const Tensor &output) {
  FlatAccess access{stridesOf(output.shape), {}, {}};
  access.stride.resize(equation.axes.size(), DimExpr(0));
  return access;
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

} // namespace fusec

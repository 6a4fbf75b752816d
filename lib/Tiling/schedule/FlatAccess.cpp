#include "Tiling/schedule/FlatAccess.h"

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

/// The index along two dimensions together, the inner one of `size`: v of [floordiv(v, size), floormod(v, size)].
/// kNoNode for any others.
static NodeId mergedIndex(const Body &body, NodeId outer, NodeId inner, const DimExpr &size) {
  const Scalar &quotient = body[outer], &rest = body[inner];
  if (quotient.op != ScalarOp::FloorDiv || rest.op != ScalarOp::FloorMod ||
      quotient.args != rest.args)
    return kNoNode;
  const Scalar &by = body[rest.args[1]];
  const bool isSize =
      by.op == ScalarOp::Const ? size.isConst(by.imm) : by.op == ScalarOp::Dim && by.dim == size;
  return isSize ? rest.args[0] : kNoNode;
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
  for (size_t d = 0; d < indices.size(); ++d) {
    if (d + 1 < indices.size())
      if (const NodeId merged =
              mergedIndex(equation.body, indices[d], indices[d + 1], shape[d + 1]);
          merged != kNoNode)
        indices[++d] = merged;
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

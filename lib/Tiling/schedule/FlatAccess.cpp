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

#include "Gir/Distance.h"

namespace fusec {

/// What a step of a loop adds to an index; nothing where that is not the same at every step.
static std::optional<DimExpr> stepOf(const Body &body, NodeId index, VarId var) {
  const auto fixed = [&](NodeId id) -> std::optional<DimExpr> {
    if (body[id].op == ScalarOp::Const)
      return DimExpr(body[id].imm);
    return body[id].op == ScalarOp::Dim ? std::optional(body[id].dim) : std::nullopt;
  };
  DimExpr sum = 0;
  std::vector<std::pair<NodeId, DimExpr>> open{{index, 1}}; // terms and factors
  while (!open.empty()) {
    const auto [id, factor] = open.back();
    open.pop_back();
    const Scalar &s = body[id];
    if (s.op == ScalarOp::Add || s.op == ScalarOp::Sub) {
      open.push_back({s.args[0], factor});
      open.push_back({s.args[1], s.op == ScalarOp::Add ? factor : factor * DimExpr(-1)});
    } else if (s.op == ScalarOp::Mul && fixed(s.args[1])) {
      open.push_back({s.args[0], factor * *fixed(s.args[1])});
    } else if (s.op == ScalarOp::Mul && fixed(s.args[0])) {
      open.push_back({s.args[1], factor * *fixed(s.args[0])});
    } else if (s.op == ScalarOp::Axis) {
      if (s.index == var)
        sum = sum + factor;
    } else {
      for (NodeId below : body.reachable({id}))
        if (body[below].op == ScalarOp::Axis && body[below].index == var)
          return std::nullopt;
    }
  }
  return sum;
}

std::optional<DimExpr> distanceOf(const GirKernel &kernel, BufferId buffer,
                                  const std::vector<NodeId> &indices, VarId var) {
  DimExpr sum = 0, stride = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    const std::optional<DimExpr> step = stepOf(kernel.body, indices[d], var);
    if (!step)
      return std::nullopt;
    sum = sum + *step * stride;
    stride = stride * kernel.buffers[buffer].shape[d];
  }
  return sum;
}

} // namespace fusec

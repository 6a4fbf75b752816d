#include "Expr/OpWeight.h"

#include "Expr/Padding.h"
#include "Expr/transforms/Profile.h"

namespace fusec {

double weightOf(ScalarOp op) {
  switch (op) {
  case ScalarOp::Const:
  case ScalarOp::Axis:
  case ScalarOp::Step:
  case ScalarOp::Dim:
  case ScalarOp::State:
  case ScalarOp::Part:
  case ScalarOp::Read:
  case ScalarOp::ReadIf: return 0;
  case ScalarOp::Exp:
  case ScalarOp::Sigmoid: return 16;
  case ScalarOp::Div:
  case ScalarOp::Sqrt: return 5;
  case ScalarOp::Tanh:
  case ScalarOp::Erf:
  case ScalarOp::Log: return 24;
  default: return op >= ScalarOp::Exp && op <= ScalarOp::Atanh ? 40 : op == ScalarOp::Pow ? 60 : 1;
  }
}

double weightOf(const Equation &equation, const ExprProgram &program) {
  const Body &body = equation.body;
  double weight = 0;
  if (equation.kind == EquationKind::Reduction) {
    // A product and its sum are one fma.
    const bool fused =
        equation.monoid == Monoid::Sum && body[equation.results[0]].op == ScalarOp::Mul;
    weight = fused ? 0 : 1;
  }
  std::vector<NodeId> atHand;
  if (sharesFactor(equation))
    for (NodeId id : body.reachable(bodyRoots(equation)))
      if (body[id].op == ScalarOp::Read ||
          (body[id].op == ScalarOp::ReadIf && paddingBounds(equation, id, program)))
        atHand.push_back(id);
  const std::vector<bool> needed = body.neededBeside(atHand, bodyRoots(equation));
  for (size_t id = 0; id < needed.size(); ++id)
    weight += needed[id] ? weightOf(body.nodes[id].op) : 0;
  return weight;
}

} // namespace fusec

#include "Expr/OpWeight.h"

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

double weightOf(const Equation &equation) {
  double weight = equation.kind == EquationKind::Reduction ? 1 : 0;
  for (NodeId id : equation.body.reachable(bodyRoots(equation)))
    weight += weightOf(equation.body[id].op);
  return weight;
}

} // namespace fusec

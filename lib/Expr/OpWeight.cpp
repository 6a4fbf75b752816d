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

/// Vector instructions of a body if the values of the nodes `atHand` are known.
static double weightBeside(const Equation &equation, const std::vector<NodeId> &atHand) {
  const std::vector<bool> needed = equation.body.neededBeside(atHand, bodyRoots(equation));
  double weight = 0;
  for (size_t id = 0; id < needed.size(); ++id)
    weight += needed[id] ? weightOf(equation.body.nodes[id].op) : 0;
  return weight;
}

bool isProduct(const Equation &equation) {
  return equation.kind == EquationKind::Reduction && equation.monoid == Monoid::Sum &&
         equation.body[equation.results[0]].op == ScalarOp::Mul;
}

double weightOf(const Equation &equation) {
  const double body = weightBeside(equation, {});
  if (equation.kind != EquationKind::Reduction)
    return body;
  return isProduct(equation) && isFloat(equation.accumulateType) ? body : body + 1;
}

double stagingWeightOf(const Equation &equation, const ExprProgram &program) {
  if (!sharesFactor(equation))
    return 0;
  const Body &body = equation.body;
  std::vector<NodeId> staged;
  for (NodeId id : body.reachable(bodyRoots(equation)))
    if (body[id].op == ScalarOp::Read ||
        (body[id].op == ScalarOp::ReadIf && paddingBounds(equation, id, program)))
      staged.push_back(id);
  return weightBeside(equation, {}) - weightBeside(equation, staged);
}

} // namespace fusec

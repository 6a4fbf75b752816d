#pragma once
#include "Expr/Expr.h"

namespace fusec {

struct ExprPass {
  std::string_view name;
  std::string_view help;
  ExprProgram (*run)(ExprProgram program);
};
/// All passes in the order in which the compiler runs them. Each leaves a program that verifies and computes the
/// same values, bit for bit.
const std::vector<ExprPass> &exprPasses();

ExprProgram simplify(ExprProgram program);
ExprProgram compose(ExprProgram program);
ExprProgram eliminateCommonEquations(ExprProgram program);
ExprProgram channelsLast(ExprProgram program);
ExprProgram eliminateDeadCode(ExprProgram program);

} // namespace fusec

#pragma once
#include "Expr/Expr.h"

namespace fusec {

struct ExprPass {
  std::string_view name;
  std::string_view help;
  ExprProgram (*run)(ExprProgram program);
};
/// All passes in the order in which the compiler runs them. Each leaves a program that verifies and computes the
/// same values bit for bit, with one exception: where compose writes a product into a sum, the sum accumulates it
/// by fma from then on, with one rounding less.
const std::vector<ExprPass> &exprPasses();

ExprProgram simplify(ExprProgram program);
ExprProgram compose(ExprProgram program);
ExprProgram splitAxes(ExprProgram program);
ExprProgram eliminateCommonEquations(ExprProgram program);
ExprProgram channelsLast(ExprProgram program);
ExprProgram eliminateDeadCode(ExprProgram program);

} // namespace fusec

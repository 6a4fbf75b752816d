#pragma once
#include "Expr/Expr.h"
#include "Support/Pass.h"

namespace fusec {

/// All passes in the order in which the compiler runs them. Each leaves a program that verifies and computes the
/// same values bit for bit, with one exception: where compose writes a product into a sum, the sum accumulates it
/// by fma from then on, with one rounding less. Without `composed` all but compose, for a program to compare with.
std::vector<Pass<ExprProgram>> exprPasses(bool composed = true);
/// `run` as a pass.
Pass<ExprProgram> exprPass(std::string_view name, std::string_view summary,
                           ExprProgram (*run)(ExprProgram program));

ExprProgram simplify(ExprProgram program);
ExprProgram compose(ExprProgram program);
ExprProgram splitDimensions(ExprProgram program);
ExprProgram splitAxes(ExprProgram program);
ExprProgram eliminateCommonEquations(ExprProgram program);
ExprProgram channelsLast(ExprProgram program);
ExprProgram eliminateDeadCode(ExprProgram program);

/// The program without the items that test the data and what computes for these alone; the ids of tensors
/// stay. nullopt: it has none. GPUs run without them: a run would have to wait there for what the host reads, and an
/// index outside reads the nearest element.
std::optional<ExprProgram> withoutDataTests(const ExprProgram &program);

} // namespace fusec

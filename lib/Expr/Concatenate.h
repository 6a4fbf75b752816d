#pragma once
#include "Expr/Expr.h"
#include "Target/Target.h"

namespace fusec {

/// The alternative "concatenate" (Alternatives.h): equations that do not need each other and differ in their operands
/// become one, side by side along an axis.
std::optional<ExprProgram> concatenate(const ExprProgram &pattern, int64_t);
std::vector<int64_t> concatenateChoices(const ExprProgram &pattern, const Target &target);

/// True if the last equation, a map that moves values and computes none, puts together the results of all others:
/// reductions that do not need each other. As one equation they are a kernel.
bool collectsResults(const std::vector<const Equation *> &equations);

} // namespace fusec

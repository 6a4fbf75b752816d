#pragma once
#include "Expr/Expr.h"
#include "Target/Target.h"

#include <map>

namespace fusec {

/// What the search thinks of these equations as one kernel before it asks for schedules (QuickCost). `uses`: countUses
/// of the program and its outputs.
double quickSeconds(const ExprProgram &program, const std::map<TensorId, int> &uses,
                    const std::vector<const Equation *> &equations, const Target &target);

} // namespace fusec

#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// How many elements of a length stand for one row of most of what a program computes (stepOf in
/// Support/TunedSizes.h), at least 1.
int64_t stepOfWork(ExprProgram &program, SymbolId symbol);

} // namespace fusec

#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// Length of one scalar operation in vector instructions (Support/MathPoly.h has the sequences of the functions); 0 for
/// what costs nothing beside its operands.
double weightOf(ScalarOp op);

/// Vector instructions for one point of the equation's domain, loads and stores aside. Of a product whose factors many
/// results use, without those that find an operand or its padding: tiles of it lie in a layout of their own.
double weightOf(const Equation &equation, const ExprProgram &program);

} // namespace fusec

#pragma once
#include "Expr/Body.h"

namespace fusec {

struct Equation;
struct ExprProgram;

/// Length of one scalar operation in vector instructions (Support/MathPoly.h has the sequences of the functions); 0 for
/// what costs nothing beside its operands.
double weightOf(ScalarOp op);

/// A sum whose terms are products: of floats both are one fma.
bool isProduct(const Equation &equation);

/// Vector instructions for one point of the equation's domain, loads and stores aside.
double weightOf(const Equation &equation);

/// The part of weightOf that finds operands and their padding, in a sum of products whose factors many results use:
/// tiles of such factors are staged in a layout of their own first. 0 for other equations.
double stagingWeightOf(const Equation &equation, const ExprProgram &program);

} // namespace fusec

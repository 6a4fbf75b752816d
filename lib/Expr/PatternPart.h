#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// Equations first..last-1 of a pattern, maps and reductions, as a pattern of their own, which keeps the numbers of the
/// tensors: what comes from outside of the part is an input, what is needed outside is an output.
ExprProgram partOfPattern(const ExprProgram &pattern, int first, int last);

/// The pattern with `part` in place of its equations first..last-1. The part's tensors are known by their names; temps
/// that nobody writes any more are gone. nullopt where something outside of the part would have nothing left to do.
std::optional<ExprProgram> withPart(const ExprProgram &pattern, int first, int last,
                                    const ExprProgram &part);

} // namespace fusec

#include "Reference/ExprEquations.h"

namespace fusec::machine {

Status runOpaque(State &state, const Equation &e) {
  return Diagnostic{Diag::UnsupportedOp, "expr " + state.program.name + ": " + e.name,
                    "the Expr interpreter has no opaque operation '" + e.opaque + "'"};
}

} // namespace fusec::machine

#pragma once
#include "Expr/Body.h"

namespace fusec {

/// A constant of any type: integers and bool in `i` (u64 by its bits), floats in `f`.
struct ScalarValue {
  int64_t i = 0;
  double f = 0;
};

/// Nearest value of `t` (ties to even), as a double; every f16, bf16 and f32 value is one.
double roundToType(DType t, double v);
/// `v` mod 2^width, sign- or zero-extended (u64 keeps its bits); bool: v != 0.
int64_t wrapToType(DType t, int64_t v);

/// One operation on constants with the bits that ScalarOps.def promises. `operandType` is the type of the
/// last operand (Select: of the values). nullopt for leaves and for operations
/// that the type does not have.
std::optional<ScalarValue> evaluateScalar(ScalarOp op, DType type, DType operandType,
                                          const ScalarValue *args);

/// Exact bit patterns, -0 and NaN told apart: the identity used by hash-consing.
bool sameBits(double a, double b);

} // namespace fusec

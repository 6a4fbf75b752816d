#pragma once
#include "Reference/OpCall.h"

namespace fusec {

/// x -= zeroPoint (broadcast to x). The result keeps x's type tag but may leave its range.
Status subtractZeroPoint(const OpCall &call, TensorValue &x, const TensorValue &zeroPoint);

/// x as floats (f32), multiplied by every factor (broadcast).
Result<TensorValue> scaleBy(const OpCall &call, const TensorValue &x,
                            const std::vector<TensorValue> &factors);

/// saturate(round(x / scale) + zeroPoint), ties to even, of the zero point's type; NaN gives the zero point.
/// Scale and zero point broadcast.
Result<TensorValue> quantise(const OpCall &call, const TensorValue &x, const TensorValue &scale,
                             const TensorValue &zeroPoint);

int64_t lowestInt(DType t);
int64_t highestInt(DType t); // by bits for u64
/// Nearest integer of `t` to v + zeroPoint, where v is rounded first.
int64_t saturateTo(DType t, double v, int64_t zeroPoint);

} // namespace fusec

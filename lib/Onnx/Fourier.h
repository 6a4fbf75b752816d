#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

struct DftSign {
  bool inverse = false;
  bool onesided = false; // forward: real to the first half; inverse: from the first half to real
};

/// How many numbers are transformed: 1 at least. Where that is no constant, `number` is the value that holds it (i64 of
/// rank 0).
struct DftLength {
  DimExpr size;
  ValueId number = kNoValue;
};

/// The discrete Fourier transform of `length` numbers of x[..., size, ..., parts] along `axis`: numbers beyond `length`
/// are left out, missing ones are 0. `parts` (the last axis) is 1 of real and 2 of complex numbers. The result has
/// `length` entries along the axis, of length/2 + 1 where `sign` makes half of them, and 2 parts, or 1 where it makes
/// real numbers. UnsupportedShape where a fixed length has too large a prime factor.
Result<ValueId> fourier(NodeImporter &n, ValueId x, int64_t axis, const DftLength &length,
                        const DftSign &sign);

} // namespace fusec

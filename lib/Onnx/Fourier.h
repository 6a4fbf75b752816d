#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

struct DftSign {
  bool inverse = false;
  bool onesided = false; // forward: real to the first half; inverse: from the first half to real
};

/// The discrete Fourier transform of `length` numbers of x[..., size, ..., parts] along `axis`, which has a fixed size:
/// numbers beyond `length` are left out, missing ones are 0. `parts` (the last axis) is 1 of real and 2 of complex
/// numbers. The result has `length` entries along the axis, of length/2 + 1 where `sign` makes half of them, and 2
/// parts, or 1 where it makes real numbers. UnsupportedShape where a length has too large a prime factor.
Result<ValueId> fourier(NodeImporter &n, ValueId x, int64_t axis, int64_t length,
                        const DftSign &sign);

} // namespace fusec

#pragma once
#include "Expr/Expr.h"
#include "Reference/TensorValue.h"

#include <functional>

namespace fusec {

struct ExprInterpreterOptions {
  /// Floats are rounded to their declared type after every operation, as compiled code does; true keeps them in
  /// double throughout, for an oracle that is closer to the real numbers.
  bool floatsInDouble = false;
  /// Called with every tensor right after it was written, in order of execution; inside scans and loops too.
  std::function<void(TensorId, const TensorValue &)> observer;
  int64_t maxLoopTrips = 10'000'000;
};

/// Runs a verified program on its inputs, in their order, and returns its outputs. Reductions accumulate in the
/// declared type and in lexicographic order of their axes. Symbols take their values from the inputs' dims and
/// from what opaque equations produce. A read outside its tensor is an error, not undefined.
Result<std::vector<TensorValue>> evaluate(const ExprProgram &program,
                                          const std::vector<TensorValue> &inputs,
                                          const ExprInterpreterOptions &options = {});

/// Evaluates `root` at every point of the box 0 <= axis a < extents[a], row-major, into `out`, which holds as many
/// elements of the root's type. The body reads constants of `program` only and no symbols: this is how weights
/// are brought into a kernel's layout at build time. An affine read of one constant is a strided copy.
Status evaluateBox(const Body &body, NodeId root, const ExprProgram &program,
                   const std::vector<int64_t> &extents, uint8_t *out);

} // namespace fusec

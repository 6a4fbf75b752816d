#pragma once
#include "Onnx/Compose.h"

namespace fusec {

/// How bytes stand for numbers: (x - zero) * scale.
struct Quantisation {
  ValueId scale; // f32[]
  ValueId zero;  // of the bytes' type, []
};

/// Short forms for the operators of com.microsoft on bytes. They round where ONNX Runtime 1.31 rounds, in f32, ties
/// to even.
class Quantised {
public:
  explicit Quantised(NodeImporter &n) : n(n), c(n) {}

  /// The bytes at input `x` with their scale and zero point at `scale` and `zero`, one number each; a zero point that
  /// is left out is 0. All bytes of an operator have the type of `type`.
  Result<Quantisation> parameters(size_t scale, size_t zero, DType type);
  /// Refuses input `i` unless it is bytes (of the type `wanted`, where that is given).
  Status bytes(size_t i, std::optional<DType> wanted = std::nullopt);
  /// Refuses an input that is there and no f32.
  Status floats(size_t i);

  ValueId dequantise(ValueId x, const Quantisation &q);
  /// saturate(round(y / scale) + zero)
  ValueId quantise(ValueId y, const Quantisation &q);
  /// saturate(round(y) + zero), for what has the output's scale
  ValueId roundTo(ValueId y, ValueId zero);
  /// From one quantisation to the other.
  ValueId requantise(ValueId x, const Quantisation &from, const Quantisation &to);
  /// x - zero, i32.
  Result<ValueId> centred(ValueId x, ValueId zero);
  /// Bytes of x f32, their scale and zero point, as DynamicQuantizeLinear makes them.
  Result<std::vector<ValueId>> dynamic(ValueId x) {
    return n.emit(OpKind::DynamicQuantizeLinear, {x}, {});
  }
  /// i32 product of matrices of bytes; zero points may be kNoValue.
  Result<ValueId> product(ValueId a, ValueId b, ValueId zeroA, ValueId zeroB);
  ValueId f32(ValueId x) { return c.cast(x, DType::F32); }

private:
  NodeImporter &n;
  Compose c;
};

} // namespace fusec

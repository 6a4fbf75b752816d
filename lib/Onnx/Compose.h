#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// Short forms for operators that are decomposed where they are imported. Shapes must fit: callers check
/// their operands first. Shapes are taken by value: those of a Graph's values move when a value is added.
class Compose {
public:
  explicit Compose(NodeImporter &n) : n(n) {}

  ValueId unary(OpKind op, ValueId x) { return n.emitOne(op, {x}, {}, n.typeOf(x), n.shapeOf(x)); }
  ValueId cast(ValueId x, DType to);
  /// Element-wise with broadcasting; comparisons make bool.
  Result<ValueId> binary(OpKind op, ValueId a, ValueId b);
  Result<ValueId> where(ValueId condition, ValueId a, ValueId b);
  ValueId transpose(ValueId x, const std::vector<int64_t> &perm);
  ValueId concat(const std::vector<ValueId> &parts, int64_t axis);
  /// Broadcasts to `shape`.
  ValueId expand(ValueId x, Shape shape);
  /// Elements start, start + step, ... of `axis`; `count` of them.
  ValueId slice(ValueId x, int64_t axis, int64_t start, int64_t count, int64_t step = 1);
  /// One of the softmax family over all axes from `axis` on, as before opset 13.
  ValueId flatSoftmax(OpKind op, ValueId x, int64_t axis);
  /// 0, 1, ..., count - 1 as i64.
  ValueId iota(const DimExpr &count);
  /// numpy's rule: [M,K] x [K,N], leading axes broadcast, a vector loses its axis in the result.
  Result<Shape> matMulShape(const Shape &a, const Shape &b);
  Result<ValueId> matMul(ValueId a, ValueId b);
  ValueId scalar(DType type, double v) { return n.scalarValue(type, v); }
  /// An i64 of rank 0.
  ValueId integer(int64_t v);
  /// A tensor of this shape with `v` everywhere.
  ValueId filled(DType type, double v, Shape shape);

private:
  NodeImporter &n;
};

} // namespace fusec

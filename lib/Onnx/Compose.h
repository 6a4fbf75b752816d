#pragma once
#include "Onnx/NodeImporter.h"

namespace fusec {

/// Short forms for operators that are decomposed where they are imported. Shapes must fit: callers check
/// their operands first. Shapes are taken by value: those of a Graph's values move when a value is added.
class Compose {
public:
  explicit Compose(NodeImporter &n) : n(n) {}

  /// One operation whose result has the rank of its first operand.
  ValueId like(OpKind op, std::vector<ValueId> in, Attributes attrs = {},
               std::vector<Shape> shapes = {});
  ValueId unary(OpKind op, ValueId x) { return like(op, {x}); }
  ValueId cast(ValueId x, DType to);
  /// Element-wise with broadcasting; comparisons make bool.
  Result<ValueId> binary(OpKind op, ValueId a, ValueId b) { return n.emitOne(op, {a, b}); }
  Result<ValueId> where(ValueId condition, ValueId a, ValueId b) {
    return n.emitOne(OpKind::Where, {condition, a, b});
  }
  ValueId transpose(ValueId x, const std::vector<int64_t> &perm) {
    return like(OpKind::Transpose, {x}, {{"perm", perm}});
  }
  ValueId concat(const std::vector<ValueId> &parts, int64_t axis) {
    return like(OpKind::Concat, parts, {{"axis", axis}});
  }
  /// Without `axes`, or with size 1 in their place.
  Result<ValueId> reduce(OpKind op, ValueId x, const std::vector<int64_t> &axes,
                         bool keep = false) {
    return n.emitOne(op, {x}, {{"axes", axes}, {"keepdims", int64_t(keep)}});
  }
  /// Entries `indices` of `axis`.
  Result<ValueId> gather(ValueId x, ValueId indices, int64_t axis) {
    return n.emitOne(OpKind::Gather, {x, indices}, {{"axis", axis}});
  }
  /// x with `fill`, of rank 0, around it. `pads` says how much is in front of each axis, then how much behind each.
  /// Negative ones cut; they are fixed, as is the other one of their axis.
  Result<ValueId> pad(ValueId x, const Shape &pads, ValueId fill);
  /// Broadcasts to `shape`.
  ValueId expand(ValueId x, Shape shape);
  /// Elements start, start + step, ... of `axis`; `count` of them.
  ValueId slice(ValueId x, int64_t axis, int64_t start, int64_t count, int64_t step = 1);
  /// One of the softmax family over all axes from `axis` on, as before opset 13.
  ValueId flatSoftmax(OpKind op, ValueId x, int64_t axis);
  /// 0, 1, ..., count - 1 as i64.
  ValueId iota(const DimExpr &count);
  Result<ValueId> matMul(ValueId a, ValueId b) { return n.emitOne(OpKind::MatMul, {a, b}); }
  ValueId scalar(DType type, double v) { return n.scalarValue(type, v); }
  /// An i64 of rank 0.
  ValueId integer(int64_t v);
  /// Size `axis` of x as an i64 of rank 0.
  Result<ValueId> extent(ValueId x, int64_t axis);
  /// A tensor of this shape with `v` everywhere.
  ValueId filled(DType type, double v, Shape shape);

private:
  NodeImporter &n;
};

} // namespace fusec

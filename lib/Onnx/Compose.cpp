#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"

namespace fusec {

ValueId Compose::cast(ValueId x, DType to) {
  if (n.typeOf(x) == to)
    return x;
  return n.emitOne(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(1)}}, to, n.shapeOf(x));
}

Result<ValueId> Compose::binary(OpKind op, ValueId a, ValueId b) {
  FUSEC_TRY(Shape shape, n.broadcast({&n.shapeOf(a), &n.shapeOf(b)}));
  bool compares = op == OpKind::Equal || op == OpKind::Less || op == OpKind::LessOrEqual ||
                  op == OpKind::Greater || op == OpKind::GreaterOrEqual;
  return n.emitOne(op, {a, b}, {}, compares ? DType::Bool : n.typeOf(a), std::move(shape));
}

Result<ValueId> Compose::where(ValueId condition, ValueId a, ValueId b) {
  FUSEC_TRY(Shape shape, n.broadcast({&n.shapeOf(condition), &n.shapeOf(a), &n.shapeOf(b)}));
  return n.emitOne(OpKind::Where, {condition, a, b}, {}, n.typeOf(a), std::move(shape));
}

ValueId Compose::transpose(ValueId x, const std::vector<int64_t> &perm) {
  Shape shape;
  for (int64_t p : perm)
    shape.push_back(n.shapeOf(x)[static_cast<size_t>(p)]);
  return n.emitOne(OpKind::Transpose, {x}, {{"perm", perm}}, n.typeOf(x), std::move(shape));
}

ValueId Compose::concat(const std::vector<ValueId> &parts, int64_t axis) {
  Shape shape = n.shapeOf(parts[0]);
  auto a = static_cast<size_t>(axis);
  for (size_t i = 1; i < parts.size(); ++i)
    shape[a] = shape[a] + n.shapeOf(parts[i])[a];
  return n.emitOne(OpKind::Concat, parts, {{"axis", axis}}, n.typeOf(parts[0]), std::move(shape));
}

ValueId Compose::expand(ValueId x, Shape shape) {
  std::vector<ValueId> in{x};
  if (ValueId operand = n.shapeOperand(shape); operand != kNoValue)
    in.push_back(operand);
  return n.emitOne(OpKind::Expand, std::move(in), {}, n.typeOf(x), std::move(shape));
}

ValueId Compose::slice(ValueId x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  Shape shape = n.shapeOf(x);
  shape[static_cast<size_t>(axis)] = DimExpr(count);
  auto one = [](int64_t v) { return std::vector<int64_t>{v}; };
  int64_t end = count ? start + (count - 1) * step + 1 : start;
  return n.emitOne(
      OpKind::Slice, {x},
      {{"starts", one(start)}, {"ends", one(end)}, {"axes", one(axis)}, {"steps", one(step)}},
      n.typeOf(x), std::move(shape));
}

ValueId Compose::flatSoftmax(OpKind op, ValueId x, int64_t axis) {
  const Shape whole = n.shapeOf(x);
  Shape matrix(whole.begin(), whole.begin() + axis);
  matrix.push_back(product(whole, static_cast<size_t>(axis), whole.size()));
  ValueId y = n.emitOne(op, {n.reshape(x, matrix)}, {{"axis", axis}}, n.typeOf(x), matrix);
  return n.reshape(y, whole);
}

ValueId Compose::iota(const DimExpr &count) {
  ValueId zero = integer(0), one = integer(1);
  ValueId limit = count.isConst() ? integer(count.constValue()) : kNoValue;
  return n.emitOne(OpKind::Range, {zero, limit, one}, {}, DType::I64, {count});
}

ValueId Compose::integer(int64_t v) { return n.constantValue(makeIntConstant({}, {v})); }

ValueId Compose::filled(DType type, double v, Shape shape) {
  std::vector<ValueId> in;
  if (ValueId operand = n.shapeOperand(shape); operand != kNoValue)
    in.push_back(operand);
  return n.emitOne(OpKind::ConstantOfShape, std::move(in), {{"value", makeScalarConstant(type, v)}},
                   type, std::move(shape));
}

Result<Shape> Compose::matMulShape(const Shape &a, const Shape &b) {
  if (a.empty() || b.empty())
    return n.mismatch("a scalar cannot be multiplied as a matrix");
  const DimExpr &k = a.back(), &otherK = b.size() == 1 ? b[0] : b[b.size() - 2];
  FUSEC_TRY([[maybe_unused]] DimExpr same, n.sameDim(k, otherK, "the sizes to sum over"));
  Shape leadA(a.begin(), a.end() - std::min<long>(2, static_cast<long>(a.size())));
  Shape leadB(b.begin(), b.end() - std::min<long>(2, static_cast<long>(b.size())));
  FUSEC_TRY(Shape out, n.broadcast({&leadA, &leadB}));
  if (a.size() > 1)
    out.push_back(a[a.size() - 2]);
  if (b.size() > 1)
    out.push_back(b.back());
  return out;
}

Result<ValueId> Compose::matMul(ValueId a, ValueId b) {
  FUSEC_TRY(Shape shape, matMulShape(n.shapeOf(a), n.shapeOf(b)));
  return n.emitOne(OpKind::MatMul, {a, b}, {}, n.typeOf(a), std::move(shape));
}

} // namespace fusec

#include "Onnx/Compose.h"

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

ValueId Compose::iota(const DimExpr &count) {
  ValueId zero = n.constantValue(makeIntConstant({}, {0})),
          one = n.constantValue(makeIntConstant({}, {1}));
  ValueId limit =
      count.isConst() ? n.constantValue(makeIntConstant({}, {count.constValue()})) : kNoValue;
  return n.emitOne(OpKind::Range, {zero, limit, one}, {}, DType::I64, {count});
}

Result<ValueId> Compose::matMul(ValueId a, ValueId b) {
  const Shape &x = n.shapeOf(a), &y = n.shapeOf(b);
  Shape leadA(x.begin(), x.end() - 2), leadB(y.begin(), y.end() - 2);
  FUSEC_TRY(Shape shape, n.broadcast({&leadA, &leadB}));
  FUSEC_TRY([[maybe_unused]] DimExpr k,
            n.sameDim(x.back(), y[y.size() - 2], "the sizes to sum over"));
  shape.push_back(x[x.size() - 2]);
  shape.push_back(y.back());
  return n.emitOne(OpKind::MatMul, {a, b}, {}, n.typeOf(a), std::move(shape));
}

} // namespace fusec

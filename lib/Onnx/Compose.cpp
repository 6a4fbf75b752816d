#include "Onnx/Compose.h"

namespace fusec {

ValueId Compose::like(OpKind op, std::vector<ValueId> in, Attributes attrs,
                      std::vector<Shape> shapes) {
  const ValueId first = in[0];
  auto made = n.emitOne(op, std::move(in), std::move(attrs), std::move(shapes));
  return n.orStandIn(std::move(made), n.typeOf(first), n.shapeOf(first));
}

ValueId Compose::cast(ValueId x, DType to) {
  if (n.typeOf(x) == to)
    return x;
  return like(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(1)}});
}

Result<ValueId> Compose::pad(ValueId x, const Shape &pads, ValueId fill) {
  const size_t rank = pads.size() / 2;
  auto isOpen = [&](size_t axis) { return !pads[axis].isConst() || !pads[axis + rank].isConst(); };
  std::vector<int64_t> fixed(2 * rank, 0);
  for (size_t i = 0; i < 2 * rank; ++i)
    if (!isOpen(i % rank))
      fixed[i] = pads[i].constValue();
  FUSEC_TRY(ValueId result,
            n.emitOne(OpKind::Pad, {x, kNoValue, fill},
                      {{"mode", std::string("constant")}, {"pads", std::move(fixed)}}));
  for (size_t d = 0; d < rank; ++d) {
    if (!isOpen(d))
      continue;
    std::vector<ValueId> parts;
    auto side = [&](const DimExpr &size) {
      Shape shape = n.shapeOf(result);
      shape[d] = size;
      if (!size.isConst(0))
        parts.push_back(expand(fill, std::move(shape)));
    };
    side(pads[d]);
    parts.push_back(result);
    side(pads[d + rank]);
    result = concat(parts, static_cast<int64_t>(d));
  }
  return result;
}

ValueId Compose::expand(ValueId x, Shape shape) {
  std::vector<ValueId> in{x};
  if (ValueId operand = n.shapeOperand(shape); operand != kNoValue)
    in.push_back(operand);
  auto made = n.emitOne(OpKind::Expand, std::move(in), {}, {shape});
  return n.orStandIn(std::move(made), n.typeOf(x), std::move(shape));
}

ValueId Compose::slice(ValueId x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  auto one = [](int64_t v) { return std::vector<int64_t>{v}; };
  int64_t end = count ? start + (count - 1) * step + 1 : start;
  return like(
      OpKind::Slice, {x},
      {{"starts", one(start)}, {"ends", one(end)}, {"axes", one(axis)}, {"steps", one(step)}});
}

ValueId Compose::flatSoftmax(OpKind op, ValueId x, int64_t axis) {
  const Shape whole = n.shapeOf(x);
  Shape matrix(whole.begin(), whole.begin() + axis);
  matrix.push_back(product(whole, static_cast<size_t>(axis), whole.size()));
  return n.reshape(like(op, {n.reshape(x, std::move(matrix))}, {{"axis", axis}}), whole);
}

ValueId Compose::iota(const DimExpr &count) {
  ValueId zero = integer(0), one = integer(1);
  ValueId limit = count.isConst() ? integer(count.constValue()) : kNoValue;
  return n.orStandIn(n.emitOne(OpKind::Range, {zero, limit, one}, {}, {{count}}), DType::I64,
                     {count});
}

ValueId Compose::integer(int64_t v) { return n.constantValue(makeIntConstant({}, {v})); }

Result<ValueId> Compose::extent(ValueId x, int64_t axis) {
  FUSEC_TRY(const ValueId size,
            n.emitOne(OpKind::Shape, {x}, {{"start", axis}, {"end", axis + 1}}));
  return n.reshape(size, {});
}

ValueId Compose::filled(DType type, double v, Shape shape) {
  std::vector<ValueId> in;
  if (ValueId operand = n.shapeOperand(shape); operand != kNoValue)
    in.push_back(operand);
  auto made = n.emitOne(OpKind::ConstantOfShape, std::move(in),
                        {{"value", makeScalarConstant(type, v)}}, {shape});
  return n.orStandIn(std::move(made), type, std::move(shape));
}

} // namespace fusec

#include "Onnx/ops/Quantised.h"

namespace fusec {

Status sideParameter(NodeImporter &n, size_t i, const Shape &product, bool rows) {
  if (!n.has(i))
    return success();
  const Shape &shape = n.shape(i);
  if (shape.size() >= 2) {
    auto all = n.broadcast({&shape, &product});
    if (all.ok() && *all == product && shape[shape.size() - (rows ? 1 : 2)].isConst(1))
      return success();
  } else if (product.size() >= 2) {
    return n.quantParameter(i, product[product.size() - (rows ? 2 : 1)]);
  }
  return n.quantParameter(i, DimExpr(1));
}

Status Quantised::bytes(size_t i, std::optional<DType> wanted) {
  if (!n.has(i))
    return success();
  if (!isByte(n.type(i)))
    return n.mismatch("input " + std::to_string(i) + " must be i8 or u8");
  if (wanted && n.type(i) != *wanted)
    return n.mismatch("input " + std::to_string(i) + " must be " +
                      std::string(fusec::name(*wanted)));
  return success();
}

Status Quantised::floats(size_t i) {
  if (!n.has(i) || n.type(i) == DType::F32)
    return success();
  if (n.type(i) == DType::F16)
    return n.unsupported("input " + std::to_string(i) + " of type f16; f32 is needed");
  return n.mismatch("input " + std::to_string(i) + " must be f32");
}

Result<Quantisation> Quantised::parameters(size_t scale, size_t zero, DType type) {
  FUSEC_CHECK(floats(scale));
  FUSEC_CHECK(n.quantParameter(scale, DimExpr(1)));
  Quantisation q{n.reshape(n.id(scale), {}), kNoValue};
  if (!n.has(zero)) {
    q.zero = c.scalar(type, 0);
    return q;
  }
  FUSEC_CHECK(bytes(zero, type));
  FUSEC_CHECK(n.quantParameter(zero, DimExpr(1)));
  q.zero = n.reshape(n.id(zero), {});
  return q;
}

ValueId Quantised::dequantise(ValueId x, const Quantisation &q) {
  return n.emitOne(OpKind::DequantizeLinear, {x, q.scale, q.zero},
                   {{"axis", int64_t(0)}, {"block_size", int64_t(0)}}, DType::F32, n.shapeOf(x));
}

ValueId Quantised::quantise(ValueId y, const Quantisation &q) {
  return n.emitOne(OpKind::QuantizeLinear, {y, q.scale, q.zero},
                   {{"axis", int64_t(0)}, {"block_size", int64_t(0)}, {"saturate", int64_t(1)}},
                   n.typeOf(q.zero), n.shapeOf(y));
}

ValueId Quantised::roundTo(ValueId y, ValueId zero) {
  return quantise(y, {c.scalar(DType::F32, 1), zero});
}

ValueId Quantised::requantise(ValueId x, const Quantisation &from, const Quantisation &to) {
  if (from.scale == to.scale && from.zero == to.zero)
    return x;
  return quantise(dequantise(x, from), to);
}

Result<ValueId> Quantised::centred(ValueId x, ValueId zero) {
  return c.binary(OpKind::Sub, c.cast(x, DType::I32), c.cast(zero, DType::I32));
}

std::vector<ValueId> Quantised::dynamic(ValueId x) {
  return n.emit(OpKind::DynamicQuantizeLinear, {x}, {},
                {{DType::U8, n.shapeOf(x)}, {DType::F32, {}}, {DType::U8, {}}});
}

Result<ValueId> Quantised::product(ValueId a, ValueId b, ValueId zeroA, ValueId zeroB) {
  FUSEC_TRY(Shape shape, c.matMulShape(n.shapeOf(a), n.shapeOf(b)));
  std::vector<ValueId> in{a, b, zeroA, zeroB};
  while (in.back() == kNoValue)
    in.pop_back();
  return n.emitOne(OpKind::MatMulInteger, std::move(in), {}, DType::I32, std::move(shape));
}

} // namespace fusec

#include "Onnx/ops/Quantised.h"

namespace fusec {

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
  return c.like(OpKind::DequantizeLinear, {x, q.scale, q.zero},
                {{"axis", int64_t(0)}, {"block_size", int64_t(0)}});
}

ValueId Quantised::quantise(ValueId y, const Quantisation &q) {
  return c.like(OpKind::QuantizeLinear, {y, q.scale, q.zero},
                {{"axis", int64_t(0)}, {"block_size", int64_t(0)}, {"saturate", int64_t(1)}});
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

Result<ValueId> Quantised::product(ValueId a, ValueId b, ValueId zeroA, ValueId zeroB) {
  std::vector<ValueId> in{a, b, zeroA, zeroB};
  while (in.back() == kNoValue)
    in.pop_back();
  return n.emitOne(OpKind::MatMulInteger, std::move(in));
}

} // namespace fusec

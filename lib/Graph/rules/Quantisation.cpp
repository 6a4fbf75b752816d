// Linear quantisation: one scale for all, one an entry of an axis, or one a block of entries.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status parameters(const OpCheck &c) {
  int64_t block = c.number("block_size");
  FUSEC_CHECK(c.expectAttribute(block >= 0, "block_size must not be negative"));
  FUSEC_CHECK(c.shapeIs(2, c.shape(1), "scale and zero point must have one shape"));
  if (block == 0 && numElements(c.shape(1)).isConst(1))
    return success();
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  Shape expected = c.shape(0);
  if (block == 0)
    return c.shapeIs(1, {expected[axis]},
                     "the scale must have one value for each entry of the axis");
  expected[axis] = ceilDiv(expected[axis], DimExpr(block));
  FUSEC_CHECK(c.expect(c.rank(1) == c.rank(0), "a block scale must have the data's rank"));
  return c.shapeIs(1, expected, "the scale does not fit blocks of " + std::to_string(block));
}

Result<Types> quantize(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Number));
  FUSEC_CHECK(c.kind(2, Kind::Integer));
  FUSEC_CHECK(parameters(c));
  return one(c.has(2) ? c.type(2) : DType::U8, c.shape(0));
}

Result<Types> dequantize(const OpCheck &c) {
  FUSEC_CHECK(c.expect(isInteger(c.type(0)), "the data must be integers"));
  FUSEC_CHECK(c.kind(1, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(parameters(c));
  return one(c.type(1), c.shape(0));
}

Result<Types> dynamicQuantize(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == DType::F32, "the data must be f32"));
  return Types{{DType::U8, c.shape(0)}, {DType::F32, {}}, {DType::U8, {}}};
}

} // namespace

void addQuantisation(RuleTable &table) {
  using enum OpKind;
  entry(table, QuantizeLinear) = quantize;
  entry(table, DequantizeLinear) = dequantize;
  entry(table, DynamicQuantizeLinear) = dynamicQuantize;
}

} // namespace fusec::rules

// Linear quantisation: one scale for all, one an entry of an axis, or one a block of entries.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status parameters(const OpCheck &c) {
  int64_t block = c.node.intAttr("block_size");
  FUSEC_CHECK(c.atLeast("block_size", 0));
  FUSEC_CHECK(c.shapeIs(2, c.shape(1)));
  if (block == 0 && numElements(c.shape(1)).isConst(1))
    return success();
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  if (block == 0)
    return c.vectorOf(1, c.shape(0)[axis]);
  Shape expected = c.shape(0);
  expected[axis] = ceilDiv(expected[axis], DimExpr(block));
  return c.shapeIs(1, expected);
}

Status quantize(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.kind(1, Kind::Number));
  FUSEC_CHECK(c.kind(2, Kind::Integer));
  FUSEC_CHECK(parameters(c));
  return c.output(c.has(2) ? c.type(2) : DType::U8, c.shape(0));
}

Status dequantize(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Integer));
  FUSEC_CHECK(c.kind(1, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(parameters(c));
  return c.output(c.type(1), c.shape(0));
}

Status dynamicQuantize(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == DType::F32, "the data must be f32"));
  FUSEC_CHECK(c.output(0, DType::U8, c.shape(0)));
  FUSEC_CHECK(c.output(1, DType::F32, {}));
  return c.output(2, DType::U8, {});
}

} // namespace

void addQuantisation(RuleTable &table) {
  using enum OpKind;
  table[QuantizeLinear] = quantize;
  table[DequantizeLinear] = dequantize;
  table[DynamicQuantizeLinear] = dynamicQuantize;
}

} // namespace fusec::rules

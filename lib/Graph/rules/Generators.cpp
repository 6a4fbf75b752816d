// Tensors made from sizes and numbers. Where an operand is no constant, it is the output's shape that says how many.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Result<Types> constantOfShape(const OpCheck &c) {
  const auto &value = std::get<ConstantRef>(c.node.attributes.at("value"));
  FUSEC_CHECK(c.expectAttribute(value && value->numElements() == 1, "value must have one element"));
  if (auto dims = c.ints(0))
    return one(value->type, Shape(dims->begin(), dims->end()));
  FUSEC_CHECK(notNegative(c));
  return one(value->type, c.outShape());
}

Result<Types> range(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  for (size_t i = 0; i < 3; ++i)
    FUSEC_CHECK(c.oneNumber(i));
  FUSEC_CHECK(c.expect(c.outShape().size() == 1, "the output must be a vector"));
  return one(c.type(0), c.outShape());
}

Result<Types> eyeLike(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.rank(0) == 2, "the operand must be a matrix"));
  return one(c.typeAttr("dtype"), c.shape(0));
}

Result<Types> shape(const OpCheck &c) {
  int64_t start = c.number("start"), end = c.number("end");
  FUSEC_CHECK(
      c.expectAttribute(start >= 0 && start <= end && end <= c.rank(0),
                        "start and end are out of range for rank " + std::to_string(c.rank(0))));
  return one(DType::I64, {DimExpr(end - start)});
}

Result<Types> size(const OpCheck &) { return one(DType::I64, {}); }

Result<Types> window(const OpCheck &c) {
  FUSEC_CHECK(c.oneNumber(0));
  DType type = c.typeAttr("output_datatype");
  FUSEC_CHECK(c.expect(type != DType::Bool, "the output must be a vector of numbers"));
  if (auto count = c.ints(0))
    return one(type, {DimExpr((*count)[0])});
  FUSEC_CHECK(c.expect(c.outShape().size() == 1, "the output must be a vector of numbers"));
  return one(type, c.outShape());
}

Result<Types> dataSize(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(0) == DType::I64 && c.rank(0) == 0, "a size must be i64 of rank 0"));
  FUSEC_CHECK(c.expectAttribute(sizedSymbol(c.graph, c.node).has_value(),
                                "symbol must name one that depends on data"));
  return one(DType::I64, {});
}

} // namespace

void addGenerators(RuleTable &table) {
  using enum OpKind;
  entry(table, DataSize) = dataSize;
  entry(table, ConstantOfShape) = constantOfShape;
  entry(table, Range) = range;
  entry(table, EyeLike) = eyeLike;
  entry(table, Shape) = shape;
  entry(table, Size) = size;
  for (OpKind op : {HannWindow, HammingWindow, BlackmanWindow})
    entry(table, op) = window;
}

} // namespace fusec::rules

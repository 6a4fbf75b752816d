// Tensors made from sizes and numbers.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status constantOfShape(const OpCheck &c) {
  const auto &value = std::get<ConstantRef>(c.node.attributes.at("value"));
  FUSEC_CHECK(c.expect(value && value->numElements() == 1, "value must have one element"));
  if (auto dims = c.ints(0))
    return c.output(value->type, Shape(dims->begin(), dims->end()));
  return c.output(value->type, c.outShape());
}

Status range(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  for (size_t i = 0; i < 3; ++i)
    FUSEC_CHECK(c.oneNumber(i));
  FUSEC_CHECK(c.expect(c.outShape().size() == 1, "the output must be a vector"));
  return c.output(c.type(0), c.outShape());
}

Status eyeLike(const OpCheck &c) {
  FUSEC_CHECK(c.exactRank(0, 2));
  return c.output(std::get<DType>(c.node.attributes.at("dtype")), c.shape(0));
}

Status shape(const OpCheck &c) {
  int64_t start = c.node.intAttr("start"), end = c.node.intAttr("end");
  FUSEC_CHECK(c.expect(start >= 0 && start <= end && end <= c.rank(0),
                       "start and end are out of range for rank " + std::to_string(c.rank(0))));
  return c.output(DType::I64, {DimExpr(end - start)});
}

Status size(const OpCheck &c) { return c.output(DType::I64, {}); }

Status window(const OpCheck &c) {
  FUSEC_CHECK(c.oneNumber(0));
  DType type = std::get<DType>(c.node.attributes.at("output_datatype"));
  FUSEC_CHECK(c.expect(type != DType::Bool && c.outShape().size() == 1,
                       "the output must be a vector of numbers"));
  if (auto count = c.ints(0))
    return c.output(type, {DimExpr((*count)[0])});
  return c.output(type, c.outShape());
}

} // namespace

void addGenerators(RuleTable &table) {
  using enum OpKind;
  table[ConstantOfShape] = constantOfShape;
  table[Range] = range;
  table[EyeLike] = eyeLike;
  table[Shape] = shape;
  table[Size] = size;
  for (OpKind op : {HannWindow, HammingWindow, BlackmanWindow})
    table[op] = window;
}

} // namespace fusec::rules

// Normalisations: parameters are vectors over channels or broadcast to the data.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status floats(const OpCheck &c) {
  for (size_t i = 0; i < c.node.inputs.size(); ++i)
    FUSEC_CHECK(c.kind(i, Kind::Float));
  return success();
}

Status channelParameters(const OpCheck &c, const DimExpr &channels) {
  for (size_t i = 1; i < c.node.inputs.size(); ++i)
    FUSEC_CHECK(c.vectorOf(i, channels));
  return c.output(c.type(0), c.shape(0));
}

Status batchNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.minRank(0, 1));
  return channelParameters(c, c.rank(0) > 1 ? c.shape(0)[1] : DimExpr(1));
}

Status instanceNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.minRank(0, 2));
  return channelParameters(c, c.shape(0)[1]);
}

Status groupNorm(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 2));
  int64_t groups = c.node.intAttr("num_groups");
  FUSEC_CHECK(c.expect(groups >= 1 && c.shape(0)[1].divisibleBy(groups, c.graph.symbols),
                       "num_groups must divide the number of channels"));
  return instanceNorm(c);
}

Status layerNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  for (size_t i = 1; i < c.node.inputs.size(); ++i)
    if (c.has(i))
      FUSEC_CHECK(c.broadcastsTo(c.shape(i), c.shape(0), "operand " + std::to_string(i)));
  FUSEC_CHECK(c.output(0, c.type(0), c.shape(0)));
  Shape stats = c.shape(0);
  std::fill(stats.begin() + static_cast<std::ptrdiff_t>(axis), stats.end(), DimExpr(1));
  for (size_t i : {1, 2})
    if (c.wants(i))
      FUSEC_CHECK(c.output(i, isFloat(c.outType(i)) ? c.outType(i) : DType::F32, stats));
  return success();
}

Status lpNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_TRY([[maybe_unused]] size_t axis, c.axis("axis", c.rank(0)));
  int64_t p = c.node.intAttr("p");
  FUSEC_CHECK(c.expect(p == 1 || p == 2, "p must be 1 or 2"));
  return c.output(c.type(0), c.shape(0));
}

Status lrn(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.minRank(0, 2));
  FUSEC_CHECK(c.atLeast("size", 1));
  FUSEC_CHECK(c.expect(c.node.intAttr("size") <= int64_t(1) << 31, "size is larger than 2^31"));
  return c.output(c.type(0), c.shape(0));
}

Status meanVariance(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  return c.output(c.type(0), c.shape(0));
}

} // namespace

void addNormalisations(RuleTable &table) {
  using enum OpKind;
  table[BatchNormalization] = batchNorm;
  table[InstanceNormalization] = instanceNorm;
  table[GroupNormalization] = groupNorm;
  table[LayerNormalization] = layerNorm;
  table[RMSNormalization] = layerNorm;
  table[LpNormalization] = lpNorm;
  table[LRN] = lrn;
  table[MeanVarianceNormalization] = meanVariance;
}

} // namespace fusec::rules

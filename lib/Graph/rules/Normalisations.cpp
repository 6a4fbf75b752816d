// Normalisations: parameters are vectors over channels or broadcast to the data.
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

Status floats(const OpCheck &c) {
  for (size_t i = 0; i < c.node.inputs.size(); ++i)
    FUSEC_CHECK(c.kind(i, Kind::Float));
  return success();
}

Result<Types> channelParameters(const OpCheck &c, const DimExpr &channels, const char *called) {
  for (size_t i = 1; i < c.node.inputs.size(); ++i)
    FUSEC_CHECK(
        c.shapeIs(i, {channels},
                  std::string(called) + " must be a vector of " + channels.str(c.graph.symbols)));
  return like(c);
}

Result<Types> batchNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.minRank(0, 1, "the data must have channels"));
  return channelParameters(c, c.rank(0) > 1 ? c.shape(0)[1] : DimExpr(1),
                           "scale, bias, mean and variance");
}

Result<Types> instanceNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.minRank(0, 3, "the data must have rank 3 or more"));
  return channelParameters(c, c.shape(0)[1], "scale and bias");
}

Result<Types> groupNorm(const OpCheck &c) {
  FUSEC_CHECK(c.minRank(0, 3, "the data must have rank 3 or more"));
  int64_t groups = c.number("num_groups");
  FUSEC_CHECK(c.expectAttribute(groups >= 1 && c.shape(0)[1].divisibleBy(groups, c.graph.symbols),
                                "num_groups must divide the number of channels"));
  return instanceNorm(c);
}

/// Outputs 1 and 2 of LayerNormalization: mean and inverse deviation.
Result<Types> layerNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_TRY(size_t axis, c.axis("axis", c.rank(0)));
  for (size_t i = 1; i < c.node.inputs.size(); ++i)
    if (c.has(i))
      FUSEC_CHECK(c.sizes.broadcastsTo(c.shape(i), c.shape(0),
                                       "scale and bias must broadcast to the data's shape"));
  Shape stats = c.shape(0);
  std::fill(stats.begin() + static_cast<std::ptrdiff_t>(axis), stats.end(), DimExpr(1));
  return Types{{c.type(0), c.shape(0)}, {DType::F32, stats}, {DType::F32, stats}};
}

Result<Types> lpNorm(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_TRY([[maybe_unused]] size_t axis, c.axis("axis", c.rank(0)));
  int64_t p = c.number("p");
  FUSEC_CHECK(c.expectAttribute(p == 1 || p == 2, "p must be 1 or 2"));
  return like(c);
}

Result<Types> lrn(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  int64_t size = c.number("size");
  FUSEC_CHECK(c.expectAttribute(size >= 1 && c.rank(0) >= 2,
                                "size must be at least 1 and the data have channels"));
  FUSEC_CHECK(c.expectAttribute(size <= int64_t(1) << 31, "size is larger than 2^31"));
  return like(c);
}

Result<Types> meanVariance(const OpCheck &c) {
  FUSEC_CHECK(floats(c));
  FUSEC_CHECK(c.axes("axes", c.rank(0)));
  return like(c);
}

} // namespace

void addNormalisations(RuleTable &table) {
  using enum OpKind;
  entry(table, BatchNormalization) = batchNorm;
  entry(table, InstanceNormalization) = instanceNorm;
  entry(table, GroupNormalization) = groupNorm;
  entry(table, LayerNormalization) = layerNorm;
  entry(table, RMSNormalization) = layerNorm;
  entry(table, LpNormalization) = lpNorm;
  entry(table, LRN) = lrn;
  entry(table, MeanVarianceNormalization) = meanVariance;
}

} // namespace fusec::rules

// Losses and determinants.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

/// x [N, C, d...], target [N, d...], weight? [C]. Output 1 of SoftmaxCrossEntropyLoss: the logarithms.
Result<Types> loss(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.expect(c.rank(0) >= 2 && c.rank(1) == c.rank(0) - 1,
                       "the target must have one axis less than the data"));
  const DimExpr &classes = c.shape(0)[1];
  for (size_t d = 0; d < c.shape(1).size(); ++d)
    FUSEC_CHECK(c.sameDim(c.shape(0)[d ? d + 1 : 0], c.shape(1)[d], "data and target sizes"));
  FUSEC_CHECK(c.shapeIs(2, {classes}, "there must be one weight a class"));
  FUSEC_CHECK(c.expect(!classes.isConst(0), "there are no classes"));
  const bool reduces = c.node.stringAttr("reduction") != "none";
  return Types{{c.type(0), reduces ? Shape() : c.shape(1)}, {c.type(0), c.shape(0)}};
}

Result<Types> determinant(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.minRank(0, 2, "the operand must be at least a matrix"));
  const Shape &in = c.shape(0);
  FUSEC_CHECK(c.sameDim(in[in.size() - 2], in.back(), "rows and columns"));
  return one(c.type(0), Shape(in.begin(), in.end() - 2));
}

} // namespace

void addMisc(RuleTable &table) {
  using enum OpKind;
  entry(table, NegativeLogLikelihoodLoss) = loss;
  entry(table, SoftmaxCrossEntropyLoss) = loss;
  entry(table, Det) = determinant;
}

} // namespace fusec::rules

// Losses, determinants, rotary embeddings and what only the importer folds.
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

/// x [B,heads,S,size] or [B,S,heads*size]; caches [B,S,half], or [positions,half] with position_ids [B,S].
Result<Types> rotaryEmbedding(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(c.expect(c.rank(0) == 3 || c.rank(0) == 4, "x must have rank 3 or 4"));
  bool packed = c.rank(0) == 3;
  const Shape &x = c.shape(0);
  int64_t heads = c.number("num_heads"), rotated = c.number("rotary_embedding_dim");
  FUSEC_CHECK(c.expect(x.back().isConst(), "the size of a head must be known"));
  int64_t size = x.back().constValue();
  if (packed) {
    FUSEC_CHECK(c.expect(heads >= 1 && size % heads == 0, "num_heads must divide the last axis"));
    size /= heads;
  }
  FUSEC_CHECK(c.expect(rotated >= 0 && rotated <= size && rotated % 2 == 0 && size % 2 == 0,
                       "rotary_embedding_dim must be even and at most the size of a head"));
  DimExpr half = (rotated ? rotated : size) / 2, tokens = packed ? x[1] : x[2];
  FUSEC_CHECK(c.kind(3, Kind::Integer));
  FUSEC_CHECK(c.shapeIs(3, {x[0], tokens}));
  for (size_t cache : {1, 2}) {
    FUSEC_CHECK(c.exactRank(cache, c.has(3) ? 2 : 3));
    Shape expected = c.has(3) ? Shape{c.shape(cache)[0], half} : Shape{x[0], tokens, half};
    FUSEC_CHECK(c.shapeIs(cache, expected));
  }
  return like(c);
}

Result<Types> nonZero(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.outShape().size() == 2 && c.outShape()[0].isConst(c.rank(0)),
                       "the output must be a matrix with one row an axis"));
  return one(DType::I64, c.outShape());
}

/// axis -1: the operand is flattened.
Result<Types> compress(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(1) == DType::Bool, "the condition must be bool"));
  FUSEC_CHECK(c.exactRank(1, 1));
  int64_t axis = c.number("axis");
  FUSEC_CHECK(c.expect(axis >= -1 && axis < c.rank(0), "the axis is out of range"));
  FUSEC_CHECK(c.expect(c.outShape().size() == (axis < 0 ? 1 : c.shape(0).size()),
                       "the output has the wrong rank"));
  return one(c.type(0), c.outShape());
}

} // namespace

void addMisc(RuleTable &table) {
  using enum OpKind;
  entry(table, NegativeLogLikelihoodLoss) = loss;
  entry(table, SoftmaxCrossEntropyLoss) = loss;
  entry(table, Det) = determinant;
  entry(table, RotaryEmbedding) = rotaryEmbedding;
  entry(table, NonZero) = nonZero;
  entry(table, Compress) = compress;
}

} // namespace fusec::rules

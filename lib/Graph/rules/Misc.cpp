// Losses, determinants, rotary embeddings and what only the importer folds.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

/// x [N, C, d...], target [N, d...], weight? [C]
Status loss(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.kind(1, Kind::Integer));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.minRank(0, 2));
  Shape target = c.shape(0);
  target.erase(target.begin() + 1);
  FUSEC_CHECK(c.shapeIs(1, target));
  FUSEC_CHECK(c.vectorOf(2, c.shape(0)[1]));
  FUSEC_CHECK(c.expect(!c.shape(0)[1].isConst(0), "there are no classes"));
  FUSEC_CHECK(c.output(0, c.type(0), c.node.stringAttr("reduction") == "none" ? target : Shape{}));
  return c.output(1, c.type(0), c.shape(0));
}

Status determinant(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.minRank(0, 2));
  const Shape &in = c.shape(0);
  FUSEC_CHECK(c.sameDim(in[in.size() - 2], in.back(), "rows and columns"));
  return c.output(c.type(0), Shape(in.begin(), in.end() - 2));
}

/// x [B,heads,S,size] or [B,S,heads*size]; caches [B,S,half], or [positions,half] with position_ids [B,S].
Status rotaryEmbedding(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(c.expect(c.rank(0) == 3 || c.rank(0) == 4, "x must have rank 3 or 4"));
  bool packed = c.rank(0) == 3;
  const Shape &x = c.shape(0);
  int64_t heads = c.node.intAttr("num_heads"), rotated = c.node.intAttr("rotary_embedding_dim");
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
  return c.output(c.type(0), x);
}

Status nonZero(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.outShape().size() == 2 && c.outShape()[0].isConst(c.rank(0)),
                       "the output must be a matrix with one row an axis"));
  return c.output(DType::I64, c.outShape());
}

/// axis -1: the operand is flattened.
Status compress(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.type(1) == DType::Bool, "the condition must be bool"));
  FUSEC_CHECK(c.exactRank(1, 1));
  int64_t axis = c.node.intAttr("axis");
  FUSEC_CHECK(c.expect(axis >= -1 && axis < c.rank(0), "the axis is out of range"));
  FUSEC_CHECK(c.expect(c.outShape().size() == (axis < 0 ? 1 : c.shape(0).size()),
                       "the output has the wrong rank"));
  return c.output(c.type(0), c.outShape());
}

} // namespace

void addMisc(RuleTable &table) {
  using enum OpKind;
  table[NegativeLogLikelihoodLoss] = loss;
  table[SoftmaxCrossEntropyLoss] = loss;
  table[Det] = determinant;
  table[RotaryEmbedding] = rotaryEmbedding;
  table[NonZero] = nonZero;
  table[Compress] = compress;
}

} // namespace fusec::rules

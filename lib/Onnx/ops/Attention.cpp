#include "Onnx/ops/Attention.h"

#include <cmath>

// Attention, decomposed into primitive operators: q [B,H,S,D], k [B,G,T,D], v [B,G,T,E], with H a multiple of G:
//   scores = softcap((q * sqrt(s)) (k * sqrt(s))^T) + bias;  y = softmax(scores) v
// where bias is the mask, the causal triangle and the padding of the cache, all of them 0 or -inf.

namespace fusec {

Result<ValueId> splitHeads(NodeImporter &n, Compose &c, ValueId x, int64_t heads) {
  const Shape s = n.shapeOf(x);
  if (heads < 1 || !s[2].isConst() || s[2].constValue() % heads)
    return n.fail(Diag::BadAttribute, "q_num_heads and kv_num_heads must divide the last axis");
  ValueId wide = n.reshape(x, {s[0], s[1], DimExpr(heads), DimExpr(s[2].constValue() / heads)});
  return c.transpose(wide, {0, 2, 1, 3});
}

ValueId repeatHeads(NodeImporter &n, ValueId x, int64_t times) {
  if (times == 1)
    return x;
  Shape s = n.shapeOf(x);
  Shape inner{s[0], s[1], DimExpr(1), s[2], s[3]}, wide{s[0], s[1], DimExpr(times), s[2], s[3]};
  std::vector<ValueId> in{n.reshape(x, inner)};
  if (ValueId operand = n.shapeOperand(wide); operand != kNoValue)
    in.push_back(operand);
  ValueId repeated = n.emitOne(OpKind::Expand, in, {}, n.typeOf(x), wide);
  return n.reshape(repeated, {s[0], s[1] * DimExpr(times), s[2], s[3]});
}

namespace {

class AttentionImporter {
public:
  explicit AttentionImporter(NodeImporter &n) : n(n), c(n) {}

  Status run() {
    FUSEC_CHECK(operands());
    DType type = n.typeOf(q);
    const Shape qs = n.shapeOf(q);
    double scale = qs[3].isConst() ? 1 / std::sqrt(static_cast<double>(qs[3].constValue())) : 0;
    scale = n.attrFloat("scale", scale);
    if (!(scale > 0))
      return n.unsupported("a scale that is not positive");
    ValueId root = c.scalar(type, std::sqrt(scale));
    FUSEC_TRY(ValueId scaledQ, c.binary(OpKind::Mul, q, root));
    FUSEC_TRY(ValueId scaledK, c.binary(OpKind::Mul, repeatHeads(n, k, times), root));
    FUSEC_TRY(ValueId scores, c.matMul(scaledQ, c.transpose(scaledK, {0, 1, 3, 2})));
    int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
    if (mode == 0)
      n.result(3, scores);
    if (double cap = n.attrFloat("softcap", 0.0); cap > 0) {
      ValueId limit = c.scalar(type, cap);
      FUSEC_TRY(ValueId ratio, c.binary(OpKind::Div, scores, limit));
      FUSEC_TRY(scores, c.binary(OpKind::Mul, c.unary(OpKind::Tanh, ratio), limit));
    }
    if (mode == 1)
      n.result(3, scores);
    FUSEC_TRY(scores, addBias(scores));
    if (mode == 2)
      n.result(3, scores);
    DType precision = type;
    if (n.attrInt("softmax_precision", 0) != 0)
      precision = n.attrType("softmax_precision").value_or(type);
    if (!isFloat(precision))
      return n.fail(Diag::BadAttribute, "softmax_precision must be a float type");
    ValueId wide = c.cast(scores, precision);
    ValueId weights =
        n.emitOne(OpKind::Softmax, {wide}, {{"axis", int64_t(3)}}, precision, n.shapeOf(wide));
    weights = c.cast(weights, type);
    if (mode == 3)
      n.result(3, weights);
    FUSEC_TRY(ValueId y, c.matMul(weights, repeatHeads(n, v, times)));
    if (flat) {
      ValueId rows = c.transpose(y, {0, 2, 1, 3});
      const Shape s = n.shapeOf(rows);
      y = n.reshape(rows, {s[0], s[1], s[2] * s[3]});
    }
    n.result(0, y);
    n.result(1, k);
    n.result(2, v);
    return success();
  }

private:
  Status operands() {
    flat = n.rank(0) == 3;
    if ((n.rank(0) != 3 && n.rank(0) != 4) || n.rank(1) != n.rank(0) || n.rank(2) != n.rank(0) ||
        !isFloat(n.type(0)) || n.type(1) != n.type(0) || n.type(2) != n.type(0))
      return n.mismatch("q, k and v must have one float type and one rank, 3 or 4");
    q = n.id(0);
    k = n.id(1);
    v = n.id(2);
    int64_t heads = n.attrInt("q_num_heads", 0), groups = n.attrInt("kv_num_heads", 0);
    if (flat) {
      FUSEC_TRY(q, splitHeads(n, c, q, heads));
      FUSEC_TRY(k, splitHeads(n, c, k, groups));
      FUSEC_TRY(v, splitHeads(n, c, v, groups));
    }
    if (!n.shapeOf(q)[1].isConst() || !n.shapeOf(k)[1].isConst())
      return n.fail(Diag::UnsupportedShape, "the number of heads must be fixed");
    heads = n.shapeOf(q)[1].constValue();
    groups = n.shapeOf(k)[1].constValue();
    if (groups < 1 || heads % groups || n.shapeOf(v)[1] != DimExpr(groups))
      return n.mismatch("the number of query heads must be a multiple of that of keys and values");
    times = heads / groups;
    if (n.has(4) != n.has(5))
      return n.fail(Diag::BadGraph, "past_key and past_value must be given together");
    if (n.has(4)) {
      for (size_t i = 4; i < 6; ++i) {
        ValueId &now = i == 4 ? k : v;
        const Shape &past = n.shape(i), &s = n.shapeOf(now);
        if (n.type(i) != n.type(0) || past.size() != 4 || past[0] != s[0] || past[1] != s[1] ||
            past[3] != s[3])
          return n.mismatch("past keys and values must fit the new ones");
        now = c.concat({n.id(i), now}, 2);
      }
    }
    return success();
  }

  ValueId minusInfinity() { return c.scalar(n.typeOf(q), -HUGE_VAL); }
  ValueId zero() { return c.scalar(n.typeOf(q), 0); }

  Result<ValueId> addBias(ValueId scores) {
    const DimExpr length = n.shapeOf(q)[2], total = n.shapeOf(k)[2];
    if (n.has(3)) {
      FUSEC_TRY(ValueId mask, maskBias(total));
      FUSEC_TRY(scores, c.binary(OpKind::Add, scores, mask));
    }
    if (n.attrInt("is_causal", 0)) {
      // Row i sees columns up to i, counted from the end of the past.
      ValueId rows = n.reshape(c.iota(length), {length, DimExpr(1)});
      if (n.has(4)) {
        ValueId past =
            n.emitOne(OpKind::Shape, {n.id(4)}, {{"start", int64_t(2)}, {"end", int64_t(3)}},
                      DType::I64, {DimExpr(1)});
        FUSEC_TRY(rows, c.binary(OpKind::Add, rows, past));
      }
      FUSEC_TRY(ValueId seen, c.binary(OpKind::LessOrEqual, c.iota(total), rows));
      FUSEC_TRY(ValueId bias, c.where(seen, zero(), minusInfinity()));
      FUSEC_TRY(scores, c.binary(OpKind::Add, scores, bias));
    }
    if (n.has(6)) { // the valid length of each batch entry's cache
      if (n.type(6) != DType::I64 || n.shape(6) != Shape{n.shapeOf(q)[0]})
        return n.mismatch("nonpad_kv_seqlen must be one i64 for each batch entry");
      ValueId lengths = n.reshape(n.id(6), {n.shapeOf(q)[0], DimExpr(1), DimExpr(1), DimExpr(1)});
      FUSEC_TRY(ValueId valid, c.binary(OpKind::Less, c.iota(total), lengths));
      FUSEC_TRY(ValueId bias, c.where(valid, zero(), minusInfinity()));
      FUSEC_TRY(scores, c.binary(OpKind::Add, scores, bias));
    }
    return scores;
  }

  /// The mask as a float bias; columns that it does not reach are masked out.
  Result<ValueId> maskBias(const DimExpr &total) {
    ValueId mask = n.id(3);
    if (n.rank(3) < 2 || n.rank(3) > 4 || (n.type(3) != DType::Bool && n.type(3) != n.type(0)))
      return n.mismatch("the mask must be bool or of the operands' type, of rank 2 to 4");
    if (n.type(3) == DType::Bool) {
      FUSEC_TRY(mask, c.where(mask, zero(), minusInfinity()));
    }
    const Shape s = n.shapeOf(mask);
    if (s.back() == total || s.back().isConst(1))
      return mask;
    if (!s.back().isConst() || !total.isConst() || s.back().constValue() > total.constValue())
      return n.mismatch("the mask's last axis must be that of the keys");
    std::vector<int64_t> pads(2 * s.size(), 0);
    pads.back() = total.constValue() - s.back().constValue();
    Shape padded = s;
    padded.back() = total;
    return n.emitOne(OpKind::Pad, {mask, kNoValue, minusInfinity()},
                     {{"mode", std::string("constant")}, {"pads", pads}}, n.typeOf(mask),
                     std::move(padded));
  }

  NodeImporter &n;
  Compose c;
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;
  bool flat = false;
  int64_t times = 1; // query heads for each key head
};

} // namespace

Status attention(NodeImporter &n) { return AttentionImporter(n).run(); }

} // namespace fusec

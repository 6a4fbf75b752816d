#include "Onnx/ops/Attention.h"

#include "Support/Diag.h"

#include <algorithm>
#include <cmath>

// Attention, decomposed into primitive operators: q [B,H,S,D], k [B,G,T,D], v [B,G,T,E], with H a multiple of G:
//   scores = softcap((q * sqrt(s)) (k * sqrt(s))^T) + mask;  y = softmax(scores) v
// Query i of a batch entry stands at position p = i + offset of the keys. The offset is the length of past_key, else
// nonpad_kv_seqlen - S, else 0. Key j takes part where a boolean mask says so and j <= p (is_causal), p - left <= j <=
// p + right (windows) and j < nonpad_kv_seqlen hold. The score of any other key is -inf, whatever q and k are: a query
// without keys then has a row of -inf, of which the softmax makes zeros.

namespace fusec {

Result<ValueId> splitHeads(NodeImporter &n, Compose &c, ValueId x, int64_t heads) {
  const Shape s = n.shapeOf(x);
  if (heads < 1 || (s[2].isConst() && s[2].constValue() % heads))
    return n.fail(Diag::BadAttribute, "q_num_heads and kv_num_heads must divide the last axis");
  FUSEC_CHECK(n.sizes().multiple(s[2], heads, "the last axis"));
  ValueId wide = n.reshape(x, {s[0], s[1], DimExpr(heads), floorDiv(s[2], DimExpr(heads))});
  return c.transpose(wide, {0, 2, 1, 3});
}

Status headsFit(NodeImporter &n, const DimExpr &heads, const DimExpr &ofKeys,
                const DimExpr &ofValues) {
  const char *text = "the number of query heads must be a multiple of that of keys and values";
  FUSEC_CHECK(n.sizes().sameShape({ofValues}, {ofKeys}, text));
  if (ofKeys.isConst(0) ||
      (heads.isConst() && ofKeys.isConst() && heads.constValue() % ofKeys.constValue() != 0))
    return n.mismatch(text);
  if (heads == ofKeys || (heads.isConst() && ofKeys.isConst()))
    return success();
  return n.sizes().sameShape({heads}, {ofKeys * floorDiv(heads, max(ofKeys, DimExpr(1)))}, text,
                             Need::Tested);
}

Result<ValueId> repeatHeads(NodeImporter &n, ValueId x, ValueId q) {
  const Shape s = n.shapeOf(x);
  const DimExpr heads = n.shapeOf(q)[1];
  Compose c(n);
  if (heads == s[1])
    return x;
  if (!heads.isConst() || !s[1].isConst()) {
    FUSEC_TRY(const ValueId all, c.extent(q, 1));
    FUSEC_TRY(const ValueId own, c.extent(x, 1));
    FUSEC_TRY(const ValueId times, c.binary(OpKind::Div, all, own));
    FUSEC_TRY(const ValueId places, c.binary(OpKind::Div, c.iota(heads), times));
    return c.gather(x, places, 1);
  }
  const DimExpr times = heads.constValue() / s[1].constValue();
  const Shape inner{s[0], s[1], DimExpr(1), s[2], s[3]}, wide{s[0], s[1], times, s[2], s[3]};
  return n.reshape(c.expand(n.reshape(x, inner), wide), {s[0], heads, s[2], s[3]});
}

Result<ValueId> rootOfScale(NodeImporter &n, ValueId q) {
  const DType type = n.typeOf(q);
  const DimExpr size = n.shapeOf(q)[3];
  Compose c(n);
  if (!size.isConst() && !n.hasAttribute("scale")) {
    FUSEC_TRY(const ValueId count, c.extent(q, 3));
    FUSEC_TRY(const ValueId root,
              c.binary(OpKind::Pow, c.cast(count, DType::F64), c.scalar(DType::F64, -0.25)));
    return c.cast(root, type);
  }
  const double usual = size.isConst() ? 1 / std::sqrt(static_cast<double>(size.constValue())) : 0;
  const double scale = n.attrFloat("scale", usual);
  if (!(scale >= 0))
    return n.unsupported("a negative scale");
  return c.scalar(type, std::sqrt(scale));
}

Result<DType> softmaxPrecision(NodeImporter &n, DType otherwise) {
  if (n.attrInt("softmax_precision", 0) == 0)
    return otherwise;
  const DType precision = n.attrType("softmax_precision").value_or(otherwise);
  using enum DType;
  if (precision != F16 && precision != BF16 && precision != F32 && precision != F64)
    return n.fail(
        Diag::BadAttribute,
        "softmax_precision must be 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  return precision;
}

namespace {

class AttentionImporter {
public:
  explicit AttentionImporter(NodeImporter &n) : n(n), c(n) {}

  Status run() {
    FUSEC_CHECK(operands());
    FUSEC_CHECK(bounds());
    DType type = n.typeOf(q);
    FUSEC_TRY(const ValueId root, rootOfScale(n, q));
    FUSEC_TRY(ValueId scaledQ, c.binary(OpKind::Mul, q, root));
    FUSEC_TRY(const ValueId keys, repeatHeads(n, k, q));
    FUSEC_TRY(ValueId scaledK, c.binary(OpKind::Mul, keys, root));
    FUSEC_TRY(ValueId scores, c.matMul(scaledQ, c.transpose(scaledK, {0, 1, 3, 2})));
    int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      return n.fail(Diag::BadAttribute, "qk_matmul_output_mode must be 0, 1, 2 or 3");
    if (mode == 0)
      n.result(3, scores);
    if (double cap = n.attrFloat("softcap", 0.0); cap != 0) {
      ValueId limit = c.scalar(type, cap);
      FUSEC_TRY(ValueId ratio, c.binary(OpKind::Div, scores, limit));
      FUSEC_TRY(scores, c.binary(OpKind::Mul, c.unary(OpKind::Tanh, ratio), limit));
    }
    if (mode == 1)
      n.result(3, scores);
    FUSEC_TRY(scores, masked(scores));
    if (mode == 2)
      n.result(3, scores);
    FUSEC_TRY(DType precision, softmaxPrecision(n, type));
    ValueId wide = c.cast(scores, precision);
    Attributes attributes{{"axis", int64_t(3)}};
    if (mayLackKeys())
      attributes.emplace("zero_masked", int64_t(1));
    ValueId weights = c.like(OpKind::Softmax, {wide}, attributes);
    weights = c.cast(weights, type);
    if (mode == 3)
      n.result(3, weights);
    FUSEC_TRY(const ValueId values, repeatHeads(n, v, q));
    FUSEC_TRY(ValueId y, c.matMul(weights, values));
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
    FUSEC_CHECK(headsFit(n, n.shapeOf(q)[1], n.shapeOf(k)[1], n.shapeOf(v)[1]));
    if (n.has(4) != n.has(5))
      return n.fail(Diag::BadGraph, "past_key and past_value must be given together");
    if (n.has(4)) {
      for (size_t i = 4; i < 6; ++i) {
        ValueId &now = i == 4 ? k : v;
        const Shape &past = n.shape(i), &s = n.shapeOf(now);
        const char *fit = "past keys and values must fit the new ones";
        if (n.type(i) != n.type(0) || past.size() != 4)
          return n.mismatch(fit);
        FUSEC_CHECK(n.sizes().sameShape({past[0], past[1], past[3]}, {s[0], s[1], s[3]}, fit));
        now = c.concat({n.id(i), now}, 2);
      }
    }
    return success();
  }

  /// Computes which keys a query sees, counted from its own position.
  Status bounds() {
    if (n.opset() >= 25) {
      left = n.attrInt("left_window_size", -1);
      right = n.attrInt("right_window_size", -1);
      if (left < -1 || right < -1)
        return n.fail(Diag::BadAttribute,
                      "left_window_size and right_window_size must be -1 (no bound), 0 or more");
    }
    if (n.attrInt("is_causal", 0) != 0)
      right = 0;
    // No key is farther away, and sums with positions do not overflow.
    constexpr int64_t kFar = int64_t(1) << 40;
    left = std::min(left, kFar);
    right = std::min(right, kFar);
    if (!n.has(6))
      return success();
    const char *lengths = "nonpad_kv_seqlen must be one i64 for each batch entry";
    if (n.type(6) != DType::I64)
      return n.mismatch(lengths);
    FUSEC_CHECK(n.sizes().sameShape(n.shape(6), {n.shapeOf(q)[0]}, lengths));
    if (n.opset() >= 25 && (n.has(4) || n.wants(1) || n.wants(2)))
      return n.fail(Diag::BadGraph,
                    "nonpad_kv_seqlen is for a cache that is kept outside of the operator, without "
                    "past_key, past_value, present_key and present_value");
    return success();
  }

  /// Whether some query may see no key at all, by a mask or its place. Counted from the end of the past, key 0 never
  /// lies right of a query; the last new key lies in every window unless there are many more queries than new keys.
  bool mayLackKeys() {
    const DimExpr length = n.shapeOf(q)[2], added = n.shape(1)[flat ? 1 : 2];
    return n.has(3) || n.has(6) ||
           (left >= 0 && (added - length + DimExpr(left)).range(n.symbols()).min < 0);
  }

  ValueId minusInfinity() { return c.scalar(n.typeOf(q), -HUGE_VAL); }
  /// [1]: the size of axis 2.
  ValueId lengthOf(ValueId x) {
    auto made = n.emitOne(OpKind::Shape, {x}, {{"start", int64_t(2)}, {"end", int64_t(3)}});
    return n.orStandIn(std::move(made), DType::I64, {DimExpr(1)});
  }

  /// Scores with the mask, and -inf for keys that take no part.
  Result<ValueId> masked(ValueId scores) {
    if (n.has(3)) {
      FUSEC_TRY(ValueId mask, wholeMask());
      FUSEC_CHECK(n.sizes().broadcastsTo(
          n.shapeOf(mask), n.shapeOf(scores),
          "the mask must broadcast to " + typeText(n.typeOf(q), n.shapeOf(scores), n.symbols())));
      if (n.typeOf(mask) == DType::Bool) {
        FUSEC_CHECK(allow(mask));
      } else {
        FUSEC_TRY(ValueId sum, c.binary(OpKind::Add, scores, mask));
        if (mask != n.id(3) || mayHoldMinusInfinity(n.in(3).constant)) {
          FUSEC_TRY(ValueId out, c.binary(OpKind::Equal, mask, minusInfinity()));
          FUSEC_TRY(sum, c.where(out, mask, sum));
        }
        scores = sum;
      }
    }
    FUSEC_CHECK(allowPlaces());
    if (allowed == kNoValue)
      return scores;
    return c.where(allowed, scores, minusInfinity());
  }

  Status allow(ValueId condition) {
    if (allowed == kNoValue) {
      allowed = condition;
      return success();
    }
    FUSEC_TRY(allowed, c.binary(OpKind::And, allowed, condition));
    return success();
  }

  /// Keys within the bounds around each query, and before the end of the cache.
  Status allowPlaces() {
    if (left < 0 && right < 0 && !n.has(6))
      return success();
    const DimExpr length = n.shapeOf(q)[2];
    const ValueId places = c.iota(n.shapeOf(k)[2]);
    ValueId counts = kNoValue; // of the valid keys of each batch entry
    if (n.has(6))
      counts = n.reshape(n.id(6), {n.shapeOf(q)[0], DimExpr(1), DimExpr(1), DimExpr(1)});
    if (left >= 0 || right >= 0) {
      ValueId own = n.reshape(c.iota(length), {length, DimExpr(1)});
      if (n.has(4)) {
        FUSEC_TRY(own, c.binary(OpKind::Add, own, lengthOf(n.id(4))));
      } else if (counts != kNoValue) {
        FUSEC_TRY(ValueId offset, c.binary(OpKind::Sub, counts, lengthOf(q)));
        FUSEC_TRY(own, c.binary(OpKind::Add, own, offset));
      }
      if (right >= 0) {
        ValueId last = own;
        if (right > 0) {
          FUSEC_TRY(last, c.binary(OpKind::Add, own, c.integer(right)));
        }
        FUSEC_TRY(ValueId seen, c.binary(OpKind::LessOrEqual, places, last));
        FUSEC_CHECK(allow(seen));
      }
      if (left >= 0) {
        FUSEC_TRY(ValueId first, c.binary(OpKind::Sub, own, c.integer(left)));
        FUSEC_TRY(ValueId seen, c.binary(OpKind::GreaterOrEqual, places, first));
        FUSEC_CHECK(allow(seen));
      }
    }
    // The last query's own key is the last valid one, and the others' lie before it.
    const bool endsThere = right == 0 && !n.has(4);
    if (counts != kNoValue && !endsThere) {
      FUSEC_TRY(ValueId valid, c.binary(OpKind::Less, places, counts));
      FUSEC_CHECK(allow(valid));
    }
    return success();
  }

  static bool mayHoldMinusInfinity(const ConstantRef &mask) {
    if (!mask)
      return true;
    for (int64_t i = 0; i < mask->numElements(); ++i)
      if (mask->floatAt(i) == -HUGE_VAL)
        return true;
    return false;
  }

  /// The mask as bool or in the type of the scores, with all columns: those that it does not reach are masked out.
  Result<ValueId> wholeMask() {
    const DType type = n.type(3) == DType::Bool ? DType::Bool : n.typeOf(q);
    if (n.rank(3) > 4)
      return n.mismatch("the mask must have at most 4 axes");
    ValueId mask = c.cast(n.id(3), type);
    Shape rest = n.shapeOf(mask);
    const DimExpr total = n.shapeOf(k)[2];
    // Up to opset 23 one column stands for all of them.
    const bool mayStandForAll = n.opset() <= 23;
    if (rest.empty() || rest.back() == total || (mayStandForAll && rest.back().isConst(1)))
      return mask;
    if (mayStandForAll && !rest.back().isConst()) { // a run says whether it is one
      rest.back() = total;
      return c.expand(mask, std::move(rest));
    }
    const DimExpr missing = total - rest.back();
    if (rest.back().isConst())
      FUSEC_CHECK(
          n.sizes().atLeast(total, rest.back().constValue(), "the number of keys, with a mask,"));
    else
      FUSEC_CHECK(n.sizes().noLess(total, rest.back(),
                                   "there must be as many keys as the mask has columns"));
    rest.back() = missing;
    ValueId block = c.filled(type, type == DType::Bool ? 0 : -HUGE_VAL, rest);
    return c.concat({mask, block}, static_cast<int64_t>(rest.size()) - 1);
  }

  NodeImporter &n;
  Compose c;
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;
  bool flat = false;
  int64_t left = -1, right = -1; // keys seen beside a query's own; -1: all
  ValueId allowed = kNoValue;    // bool: which keys take part; all without it
};

} // namespace

Status attention(NodeImporter &n) { return AttentionImporter(n).run(); }

} // namespace fusec

#include "Onnx/OpTable.h"
#include "Onnx/ops/Quantised.h"
#include "Support/Diag.h"

#include <cmath>
#include <limits>

// QAttention: x [B,S,I] and weights [I,3*N*D] are bytes; their product, brought to f32, holds q, k and v of N heads.
//   y = softmax(scale * q k^T + mask) v
// where the mask is mask_filter_value at keys that mask_index excludes, and the lowest f32 at keys that lie ahead.
// B: batch, S: new positions, P: past ones, T = P + S.

namespace fusec {
namespace {

class QAttentionImporter {
public:
  explicit QAttentionImporter(NodeImporter &n) : n(n), c(n), q8(n) {}

  Status run() {
    FUSEC_CHECK(checkAttributes());
    FUSEC_TRY(ValueId all, projected());
    Shape heads{batch, steps, DimExpr(numHeads), DimExpr(headSize)};
    ValueId parts[3];
    for (int64_t i = 0; i < 3; ++i) {
      ValueId part = c.slice(all, 2, i * numHeads * headSize, numHeads * headSize);
      parts[i] = c.transpose(n.reshape(part, heads), {0, 2, 1, 3});
    }
    FUSEC_CHECK(appendToPast(parts[1], parts[2]));
    FUSEC_TRY(ValueId scores, c.matMul(parts[0], c.transpose(parts[1], {0, 1, 3, 2})));
    FUSEC_TRY(scores, c.binary(OpKind::Mul, scores, c.scalar(DType::F32, scale)));
    FUSEC_TRY(ValueId mask, maskBias());
    if (mask != kNoValue) {
      FUSEC_TRY(scores, c.binary(OpKind::Add, scores, mask));
    }
    ValueId weights = c.like(OpKind::Softmax, {scores}, {{"axis", int64_t(3)}});
    FUSEC_TRY(ValueId y, c.matMul(weights, parts[2]));
    n.result(0,
             n.reshape(c.transpose(y, {0, 2, 1, 3}), {batch, steps, DimExpr(numHeads * headSize)}));
    if (n.wants(1)) {
      Shape one{DimExpr(1), batch, DimExpr(numHeads), total, DimExpr(headSize)};
      n.result(1, c.concat({n.reshape(parts[1], one), n.reshape(parts[2], one)}, 0));
    }
    return success();
  }

private:
  Status checkAttributes() {
    numHeads = n.attrInt("num_heads");
    scale = n.attrFloat("scale", 0.0);
    filter = n.attrFloat("mask_filter_value", -10000.0);
    causal = n.attrInt("unidirectional", 0) != 0;
    if (n.attrInt("do_rotary", 0))
      return n.unsupported("attribute 'do_rotary' other than 0");
    if (n.attrInt("past_present_share_buffer", 0))
      return n.unsupported("attribute 'past_present_share_buffer' other than 0");
    if (numHeads < 1)
      return n.fail(Diag::BadAttribute, "num_heads must be at least 1");
    return success();
  }

  /// x times the weights and the bias: [B,S,3*N*D].
  Result<ValueId> projected() {
    if (n.rank(0) != 3 || n.rank(1) != 2)
      return n.mismatch("the data must have rank 3 and the weights rank 2");
    for (size_t i : {0, 1})
      FUSEC_CHECK(q8.bytes(i));
    const DimExpr columns = n.shape(1)[1];
    if (!columns.isConst())
      return n.needsFixed("the weights must have a fixed shape", {columns});
    if (columns.constValue() % 3 || columns.constValue() / 3 % numHeads)
      return n.mismatch("the weights' columns must be a multiple of three times num_heads, " +
                        std::to_string(numHeads));
    headSize = columns.constValue() / 3 / numHeads;
    if (scale == 0)
      scale = 1 / std::sqrt(static_cast<double>(headSize));
    batch = n.shape(0)[0];
    steps = total = n.shape(0)[1];
    FUSEC_TRY(Quantisation x, q8.parameters(3, 6, n.type(0)));
    FUSEC_CHECK(q8.floats(2));
    FUSEC_CHECK(n.sizes().sameShape(n.shape(2), {columns},
                                    "the bias must have one value for each column of the weights"));
    FUSEC_CHECK(q8.floats(4));
    FUSEC_CHECK(n.quantParameter(4, columns));
    FUSEC_CHECK(q8.bytes(7, n.type(1)));
    FUSEC_CHECK(n.quantParameter(7, columns));
    FUSEC_TRY(ValueId sum, q8.product(n.id(0), n.id(1), x.zero, n.id(7)));
    FUSEC_TRY(ValueId factor, c.binary(OpKind::Mul, x.scale, n.id(4)));
    FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, q8.f32(sum), factor));
    return c.binary(OpKind::Add, y, n.id(2));
  }

  /// past is [2,B,N,P,D]: keys, then values.
  Status appendToPast(ValueId &k, ValueId &v) {
    if (!n.has(8))
      return success();
    FUSEC_CHECK(q8.floats(8));
    const Shape past = n.shape(8); // a copy: nodes that are made move the values
    const char *text = "past must be [2, batch, num_heads, past length, head size]";
    if (past.size() != 5)
      return n.mismatch(text);
    FUSEC_CHECK(n.sizes().sameShape(past, {2, batch, numHeads, past[3], headSize}, text));
    for (int64_t i = 0; i < 2; ++i) {
      ValueId &now = i == 0 ? k : v;
      ValueId old = n.reshape(c.slice(n.id(8), 0, i, 1), {past[1], past[2], past[3], past[4]});
      now = c.concat({old, now}, 2);
    }
    total = past[3] + steps;
    return success();
  }

  /// mask_filter_value where `kept` is false, else 0.
  Result<ValueId> filtered(ValueId kept) {
    return c.where(kept, c.scalar(DType::F32, 0), c.scalar(DType::F32, filter));
  }

  Result<ValueId> positive(ValueId mask) {
    return c.binary(OpKind::Greater, mask, n.constantValue(makeScalarConstant(DType::I32, 0)));
  }

  /// What is added to the scores, of a shape that broadcasts to [B,N,S,T]; kNoValue: nothing.
  Result<ValueId> maskBias() {
    ValueId bias = kNoValue;
    if (n.has(5)) {
      FUSEC_TRY(ValueId kept, keptKeys());
      if (kept != kNoValue) {
        FUSEC_TRY(bias, filtered(kept));
      }
    }
    if (!causal)
      return bias;
    ValueId rows = n.reshape(c.iota(steps), {steps, DimExpr(1)});
    if (n.has(8)) {
      FUSEC_TRY(ValueId past,
                n.emitOne(OpKind::Shape, {n.id(8)}, {{"start", int64_t(3)}, {"end", int64_t(4)}}));
      FUSEC_TRY(rows, c.binary(OpKind::Add, rows, past));
    }
    FUSEC_TRY(ValueId seen, c.binary(OpKind::LessOrEqual, c.iota(total), rows));
    return c.where(seen, bias == kNoValue ? c.scalar(DType::F32, 0) : bias,
                   c.scalar(DType::F32, static_cast<double>(std::numeric_limits<float>::lowest())));
  }

  /// The keys that mask_index keeps, as bool; kNoValue: all.
  Result<ValueId> keptKeys() {
    const Shape mask = n.shape(5);
    if (n.type(5) != DType::I32)
      return n.mismatch("mask_index must be i32");
    const char *text =
        "mask_index must be [batch], [2 * batch], [batch, keys] or [batch, steps, keys]";
    const DimExpr one(1);
    if (mask.size() == 1)
      return keptBetween(text);
    const bool isOfKeys = total.isConst(1) && !mask[0].isConst(1);
    if (mask.size() == 2 && mask[1].isConst(1) && mask != Shape{batch, total} && !isOfKeys) {
      FUSEC_CHECK(n.sizes().broadcastsTo({mask[0]}, {batch}, text));
      return kNoValue; // it would mask all keys of a row alike
    }
    if (mask.size() != 2 && mask.size() != 3)
      return n.unsupported("a mask_index of this shape; [batch], [2 * batch], [batch, keys] and "
                           "[batch, steps, keys] are supported");
    const bool hasSteps = mask.size() == 3;
    FUSEC_CHECK(n.sizes().sameShape(
        mask, hasSteps ? Shape{batch, steps, total} : Shape{batch, total}, text));
    FUSEC_TRY(ValueId kept, positive(n.id(5)));
    return n.reshape(kept, {batch, one, hasSteps ? steps : one, total});
  }

  /// mask_index holds the ends of the keys that count, and behind them, where it is twice as long, their starts.
  /// `text` says what it must be.
  Result<ValueId> keptBetween(const char *text) {
    const Shape column{batch, DimExpr(1), DimExpr(1), DimExpr(1)};
    const DimExpr length = n.shape(5)[0];
    const ValueId keys = c.cast(c.iota(total), DType::I32);
    if (length == batch)
      return c.binary(OpKind::Less, keys, n.reshape(n.id(5), column));
    // 0 for either length, and for no other one.
    const DimExpr off = (length - batch) * (length - batch * DimExpr(2));
    if (!n.require({SizeRule::Kind::Equal, off, DimExpr(0), {}, {}, text}, Need::Tested))
      return n.mismatch(text);
    const ValueId places = c.iota(batch);
    FUSEC_TRY(const ValueId ends, c.gather(n.id(5), places, 0));
    FUSEC_TRY(const ValueId kept, c.binary(OpKind::Less, keys, n.reshape(ends, column)));
    // Zeros stand behind ends without starts.
    const ValueId all = c.concat({n.id(5), c.filled(DType::I32, 0, {batch})}, 0);
    FUSEC_TRY(const ValueId count, c.extent(n.id(0), 0));
    FUSEC_TRY(const ValueId behind, c.binary(OpKind::Add, places, count));
    FUSEC_TRY(const ValueId starts, c.gather(all, behind, 0));
    FUSEC_TRY(const ValueId begun,
              c.binary(OpKind::GreaterOrEqual, keys, n.reshape(starts, column)));
    return c.binary(OpKind::And, kept, begun);
  }

  NodeImporter &n;
  Compose c;
  Quantised q8;
  int64_t numHeads = 0, headSize = 0;
  double scale = 0, filter = 0;
  bool causal = false;
  DimExpr batch, steps, total;
};

Status qAttention(NodeImporter &n) { return QAttentionImporter(n).run(); }

constexpr OpRow kRows[] = {
    {"QAttention", 1, 1, 5, 9, 2, qAttention,
     "f32; no rotary embedding, no shared buffer of past and present"},
};

} // namespace

std::span<const OpRow> quantisedAttentionOps() { return kRows; }

} // namespace fusec

#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/ops/Attention.h"
#include "Support/Diag.h"

// Operators around attention, decomposed into primitive ones: RotaryEmbedding and CausalConvWithState; and the rows of
// the family.

namespace fusec {
namespace {

/// x [B,H,S,D] or [B,S,H*D]; the first `rotary_embedding_dim` of each head's D entries turn in pairs.
Status rotaryEmbedding(NodeImporter &n) {
  Compose c(n);
  bool flat = n.rank(0) == 3;
  int64_t heads = n.attrInt("num_heads", 0), interleaved = n.attrInt("interleaved", 0);
  int64_t dims = n.attrInt("rotary_embedding_dim", 0);
  if (n.rank(0) != 3 && n.rank(0) != 4)
    return n.mismatch("x must have rank 3 or 4");
  ValueId x = n.id(0);
  Shape s = n.shape(0);
  if (flat) {
    if (heads < 1 || (s[2].isConst() && s[2].constValue() % heads))
      return n.fail(Diag::BadAttribute, "num_heads must divide the last axis");
    FUSEC_CHECK(n.sizes().multiple(s[2], heads, "the last axis"));
    x = n.reshape(x, {s[0], s[1], DimExpr(heads), floorDiv(s[2], DimExpr(heads))});
  } else {
    x = c.transpose(x, {0, 2, 1, 3});
  }
  const Shape rows = n.shapeOf(x); // [B, S, H, D]
  if (!rows[3].isConst()) {
    if (const Shape &cos = n.shape(1); dims == 0 && !cos.empty() && cos.back().isConst())
      FUSEC_CHECK(n.sameDim(rows[3], cos.back() * DimExpr(2), "the sizes of a head"));
    return n.needsFixed("the head size must be fixed", {rows[3]});
  }
  int64_t head = rows[3].constValue();
  if (dims == 0)
    dims = head;
  int64_t half = dims / 2;
  if (dims < 0 || dims > head || dims % 2)
    return n.fail(Diag::BadAttribute,
                  "rotary_embedding_dim must be even and at most the head size");
  ValueId caches[2] = {n.id(1), n.id(2)};
  for (ValueId &cache : caches) {
    if (n.has(3)) { // [max, half] looked up by position: [B, S, half]
      if (n.rank(3) != 2 || n.shapeOf(cache).size() != 2)
        return n.mismatch("caches and position_ids must be matrices");
      FUSEC_TRY(cache, c.gather(cache, n.id(3), 0));
    }
    const Shape cs = n.shapeOf(cache);
    if (cs.size() != 3 || cs[2] != DimExpr(half) || n.typeOf(cache) != n.type(0))
      return n.mismatch("the last axis of the caches must be half of rotary_embedding_dim");
    cache = n.reshape(cache, {cs[0], cs[1], DimExpr(1), cs[2]});
  }
  ValueId first = interleaved ? c.slice(x, 3, 0, half, 2) : c.slice(x, 3, 0, half);
  ValueId second = interleaved ? c.slice(x, 3, 1, half, 2) : c.slice(x, 3, half, half);
  FUSEC_TRY(ValueId cosFirst, c.binary(OpKind::Mul, caches[0], first));
  FUSEC_TRY(ValueId sinSecond, c.binary(OpKind::Mul, caches[1], second));
  FUSEC_TRY(ValueId sinFirst, c.binary(OpKind::Mul, caches[1], first));
  FUSEC_TRY(ValueId cosSecond, c.binary(OpKind::Mul, caches[0], second));
  FUSEC_TRY(ValueId real, c.binary(OpKind::Sub, cosFirst, sinSecond));
  FUSEC_TRY(ValueId imaginary, c.binary(OpKind::Add, sinFirst, cosSecond));
  const Shape part = n.shapeOf(real);
  ValueId turned;
  if (interleaved) {
    Shape pair = part;
    pair.push_back(DimExpr(1));
    ValueId both = c.concat({n.reshape(real, pair), n.reshape(imaginary, pair)}, 4);
    turned = n.reshape(both, {part[0], part[1], part[2], DimExpr(dims)});
  } else {
    turned = c.concat({real, imaginary}, 3);
  }
  ValueId y = dims == head ? turned : c.concat({turned, c.slice(x, 3, dims, head - dims)}, 3);
  n.result(0, flat ? n.reshape(y, s) : c.transpose(y, {0, 2, 1, 3}));
  return success();
}

/// x [B,C,L], w [C,1,K], state [B,C,K-1]: a depthwise convolution over state ++ x.
Status causalConv(NodeImporter &n) {
  Compose c(n);
  std::string activation = n.attrString("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.fail(Diag::BadAttribute, "activation must be none, silu or swish");
  const Shape x = n.shape(0), w = n.shape(1);
  const char *layout = "x must be [B,C,L] and the weights [C,1,K]";
  if (x.size() != 3 || w.size() != 3 || n.type(1) != n.type(0))
    return n.mismatch(layout);
  if (!isStatic(w))
    return n.needsFixed("the weights must have a fixed shape", w);
  if (!w[1].isConst(1) || w[2].constValue() < 1)
    return n.mismatch(layout);
  FUSEC_CHECK(n.sizes().sameShape({x[1]}, {w[0]}, layout));
  if (n.has(2) && n.type(2) != n.type(0))
    return n.mismatch("the bias must be [C] and of x's type");
  if (n.has(2))
    FUSEC_CHECK(n.sizes().sameShape(n.shape(2), {w[0]}, "the bias must be [C]"));
  int64_t channels = w[0].constValue(), kernel = w[2].constValue();
  Shape state{x[0], x[1], DimExpr(kernel - 1)};
  ValueId past;
  if (n.has(3)) {
    past = n.id(3);
    const std::string text = "the state must be " + typeText(n.type(0), state, n.symbols());
    if (n.type(3) != n.type(0))
      return n.mismatch(text);
    FUSEC_CHECK(n.sizes().sameShape(n.shape(3), state, text));
  } else {
    past = c.filled(n.type(0), 0, state);
  }
  ValueId padded = c.concat({past, n.id(0)}, 2);
  using Ints = std::vector<int64_t>;
  std::vector<ValueId> in{padded, n.id(1)};
  if (n.has(2))
    in.push_back(n.id(2));
  FUSEC_TRY(ValueId y, n.emitOne(OpKind::Conv, in,
                                 {{"kernel_shape", Ints{kernel}},
                                  {"strides", Ints{1}},
                                  {"dilations", Ints{1}},
                                  {"pads", Ints{0, 0}},
                                  {"group", channels}}));
  if (activation != "none")
    y = c.like(OpKind::Swish, {y}, {{"alpha", 1.0}});
  n.result(0, y);
  if (!n.wants(1))
    return success();
  const auto shapeOf = [&](ValueId value) {
    return n.emitOne(OpKind::Shape, {value}, {{"start", int64_t(2)}, {"end", int64_t(3)}});
  };
  FUSEC_TRY(const ValueId length, shapeOf(n.id(0)));
  FUSEC_TRY(const ValueId end, shapeOf(padded));
  FUSEC_TRY(const ValueId last,
            n.emitOne(OpKind::SliceDynamic, {padded, length, end, n.intsValue({2})}));
  n.result(1, last);
  return success();
}

constexpr OpRow kRows[] = {
    {"Attention", 23, kNewestOpset, 3, 7, 4, attention},
    {"CausalConvWithState", 27, kNewestOpset, 2, 4, 2, causalConv},
    {"LinearAttention", 27, kNewestOpset, 3, 6, 2, linearAttention,
     "a Scan over the tokens; packed sizes are fixed"},
    {"RotaryEmbedding", 23, kNewestOpset, 3, 4, 1, rotaryEmbedding},
};

constexpr OpRow kPreviewRows[] = {
    {"FlexAttention", 1, 1, 3, 3, 1, flexAttention},
};

} // namespace

std::span<const OpRow> attentionOps() { return kRows; }
std::span<const OpRow> previewOps() { return kPreviewRows; }

} // namespace fusec

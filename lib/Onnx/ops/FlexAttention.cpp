#include "Onnx/GraphBuilder.h"
#include "Onnx/ops/Attention.h"
#include "Support/Diag.h"

// FlexAttention of domain ai.onnx.preview: q [B,H,S,D], k [B,G,T,D], v [B,G,T,E], with H a multiple of G:
//   y = prob_mod(softmax(score_mod((q * sqrt(s)) (k * sqrt(s))^T))) v
// where softmax_precision, f32 or wider without it, is the type from the scores on. Both graphs are written in place.
// A line of -inf gives NaN, as the definition has it.

namespace fusec {
namespace {

/// What the node's graph `key`, where there is one, makes of x: of the same type and shape.
Result<ValueId> modified(NodeImporter &n, const std::string &key, ValueId x) {
  if (!n.hasAttribute(key))
    return x;
  const onnx::GraphProto *graph = n.attrGraph(key);
  if (!graph)
    return x;
  FUSEC_TRY(std::vector<ValueId> made, n.graphBuilder().inlineSubgraph(*graph, {x}, n.name()));
  const auto text = [&](ValueId v) { return typeText(n.typeOf(v), n.shapeOf(v), n.symbols()); };
  if (made.size() != 1 || text(made[0]) != text(x))
    return n.fail(Diag::ShapeMismatch, key + " must make one tensor " + text(x) +
                                           ", of the type and shape of its input" +
                                           (made.size() == 1 ? "; it makes " + text(made[0]) : ""));
  return made[0];
}

} // namespace

Status flexAttention(NodeImporter &n) {
  Compose c(n);
  const DType type = n.type(0);
  if (n.rank(0) != 4 || n.rank(1) != 4 || n.rank(2) != 4 || !isFloat(type) || n.type(1) != type ||
      n.type(2) != type)
    return n.mismatch("q, k and v must have one float type and rank 4");
  const Shape q = n.shape(0), k = n.shape(1), v = n.shape(2);
  FUSEC_CHECK(headsFit(n, q[1], k[1], v[1]));
  FUSEC_TRY(DType precision, softmaxPrecision(n, type == DType::F64 ? type : DType::F32));
  FUSEC_TRY(const ValueId root, rootOfScale(n, n.id(0)));
  FUSEC_TRY(ValueId scaledQ, c.binary(OpKind::Mul, n.id(0), root));
  FUSEC_TRY(const ValueId keys, repeatHeads(n, n.id(1), n.id(0)));
  FUSEC_TRY(ValueId scaledK, c.binary(OpKind::Mul, keys, root));
  FUSEC_TRY(ValueId scores, c.matMul(scaledQ, c.transpose(scaledK, {0, 1, 3, 2})));
  FUSEC_TRY(scores, modified(n, "score_mod", c.cast(scores, precision)));
  ValueId weights = c.like(OpKind::Softmax, {scores}, {{"axis", int64_t(3)}});
  FUSEC_TRY(weights, modified(n, "prob_mod", weights));
  FUSEC_TRY(const ValueId values, repeatHeads(n, n.id(2), n.id(0)));
  FUSEC_TRY(ValueId y, c.matMul(weights, c.cast(values, precision)));
  n.result(0, c.cast(y, type));
  return success();
}

} // namespace fusec

#include "Onnx/GraphBuilder.h"
#include "Onnx/ops/Attention.h"
#include "Support/Diag.h"

#include <cmath>

// LinearAttention: attention without a softmax, a recurrence over the tokens. Each batch entry and key head carries a
// state S [dk,dv] in f32, zero or past_state before the first token, present_state behind the last:
//
//   S = e^decay S                  (gated, gated_delta; decay by key entry or by head)
//   w = beta (v - k S), else v     (delta, gated_delta)
//   S = S + k^T w;  y = scale q S  for each query head that shares the key head
//
// A Scan over the tokens, or where there is one token (a step of decoding) its body alone. chunk_size tells how a GPU
// may group tokens and changes no result.

namespace fusec {
namespace {

class LinearAttentionImporter {
public:
  explicit LinearAttentionImporter(NodeImporter &n) : n(n), c(n) {}

  Status run() {
    n.ignore("chunk_size");
    FUSEC_CHECK(rule());
    FUSEC_CHECK(operands());
    const DType type = n.type(0), stateType = n.has(3) ? n.type(3) : type;
    FUSEC_TRY(ValueId start, firstState());
    std::vector<ValueId> made;
    if (tokens.isConst(1)) {
      std::vector<ValueId> slices;
      for (ValueId x : scanned)
        slices.push_back(n.reshape(x, withoutTokens(n.shapeOf(x))));
      FUSEC_TRY(made, step(start, slices));
    } else {
      FUSEC_TRY(made, scan(start));
    }
    const Shape &q = n.shape(0);
    n.result(0, n.reshape(made[1], {q[0], q[1], DimExpr(keyHeads * sharing) * DimExpr(valueSize)}));
    n.result(1, c.cast(made[0], stateType));
    return success();
  }

private:
  Status rule() {
    const std::string name = n.attrString("update_rule", "gated_delta");
    if (name != "linear" && name != "gated" && name != "delta" && name != "gated_delta")
      return n.fail(Diag::BadAttribute,
                    "update_rule must be linear, gated, delta or gated_delta, not '" + name + "'");
    gated = name.starts_with("gated");
    corrected = name.ends_with("delta");
    for (auto [input, what, wanted] :
         {std::tuple(size_t(4), "decay", gated), std::tuple(size_t(5), "beta", corrected)})
      if (n.has(input) != wanted)
        return n.fail(Diag::BadGraph, "update_rule '" + name + "' " +
                                          (wanted ? "needs" : "has no") + " input '" + what + "'");
    return success();
  }

  Status operands() {
    for (size_t i : {0, 1, 2, 4, 5})
      if (n.has(i) && (n.rank(i) != 3 || n.type(i) != n.type(0) || !isFloat(n.type(i))))
        return n.mismatch("all operands but the state must have one float type and rank 3");
    const int64_t queryHeads = n.attrInt("q_num_heads");
    keyHeads = n.attrInt("kv_num_heads");
    if (queryHeads < 1 || keyHeads < 1 || queryHeads % keyHeads)
      return n.fail(Diag::BadAttribute, "q_num_heads must be a positive multiple of kv_num_heads");
    sharing = queryHeads / keyHeads;
    tokens = n.shape(0)[1];
    for (size_t i : {1, 2, 4, 5})
      if (n.has(i))
        for (size_t axis : {0, 1})
          FUSEC_CHECK(n.sameDim(n.shape(0)[axis], n.shape(i)[axis], "batch sizes and lengths"));
    FUSEC_TRY(keySize, entries(0, queryHeads));
    FUSEC_TRY(int64_t ofKeys, entries(1, keyHeads));
    FUSEC_TRY(valueSize, entries(2, keyHeads));
    if (ofKeys != keySize || keySize < 1)
      return n.mismatch("the heads of queries and keys must have one size, 1 or more");
    const DimExpr heads(keyHeads);
    unpack(0, {heads, DimExpr(sharing), DimExpr(keySize)});
    unpack(1, {heads, DimExpr(keySize)});
    unpack(2, {heads, DimExpr(valueSize)});
    if (gated) {
      FUSEC_TRY(int64_t size, entries(4, keyHeads));
      if (size != 1 && size != keySize)
        return n.mismatch("decay must have one entry a key head, or as many as the keys");
      unpack(4, {heads, DimExpr(size)});
    }
    if (corrected) {
      const DimExpr &last = n.shape(5)[2];
      if (!last.isConst(1))
        FUSEC_CHECK(
            n.sizes().sameShape({last}, {heads}, "beta must have one entry, or one a key head"));
      unpack(5, {last});
    }
    return success();
  }

  /// Entries of each of `heads` heads that the last axis of input `i` holds.
  Result<int64_t> entries(size_t i, int64_t heads) {
    const DimExpr &last = n.shape(i)[2];
    if (!last.isConst())
      return n.needsFixed("the last axis of input " + std::to_string(i) + " must be fixed", {last});
    if (last.constValue() % heads)
      return n.mismatch("the heads must divide the last axis of input " + std::to_string(i));
    return last.constValue() / heads;
  }

  /// Input `i` as [B, tokens, parts...] is one that the recurrence goes along.
  void unpack(size_t i, std::vector<DimExpr> parts) {
    Shape s{n.shape(i)[0], n.shape(i)[1]};
    s.insert(s.end(), parts.begin(), parts.end());
    scanned.push_back(n.reshape(n.id(i), std::move(s)));
  }

  static Shape withoutTokens(Shape s) {
    s.erase(s.begin() + 1);
    return s;
  }

  /// [B, heads, dk, dv] in f32.
  Result<ValueId> firstState() {
    const Shape state{n.shape(0)[0], DimExpr(keyHeads), DimExpr(keySize), DimExpr(valueSize)};
    if (n.has(3)) {
      const std::string text = "past_state must be like " +
                               typeText(DType::F32, state, n.symbols()) + ", of any float type";
      if (!isFloat(n.type(3)))
        return n.mismatch(text);
      FUSEC_CHECK(n.sizes().sameShape(n.shape(3), state, text));
      return c.cast(n.id(3), DType::F32);
    }
    return c.filled(DType::F32, 0, state);
  }

  /// One token: the new state and y [B, heads, sharing, dv]; the slices are of `scanned`.
  Result<std::vector<ValueId>> step(ValueId state, const std::vector<ValueId> &slices) {
    const Shape s = n.shapeOf(state);
    const DimExpr one(1);
    size_t next = 0;
    auto wide = [&] { return c.cast(slices[next++], DType::F32); };
    ValueId q = wide(), k = wide(), v = wide();
    if (gated) {
      ValueId decay = c.unary(OpKind::Exp, wide());
      Shape column = n.shapeOf(decay);
      column.push_back(one);
      FUSEC_TRY(state, c.binary(OpKind::Mul, state, n.reshape(decay, column)));
    }
    ValueId written = n.reshape(v, {s[0], s[1], one, s[3]});
    if (corrected) {
      ValueId beta = wide();
      FUSEC_TRY(ValueId held, c.matMul(n.reshape(k, {s[0], s[1], one, s[2]}), state));
      FUSEC_TRY(ValueId missing, c.binary(OpKind::Sub, written, held));
      FUSEC_TRY(written, c.binary(OpKind::Mul, missing,
                                  n.reshape(beta, {s[0], n.shapeOf(beta)[1], one, one})));
    }
    FUSEC_TRY(ValueId outer, c.binary(OpKind::Mul, n.reshape(k, {s[0], s[1], s[2], one}), written));
    FUSEC_TRY(state, c.binary(OpKind::Add, state, outer));
    FUSEC_TRY(ValueId read, c.matMul(q, state));
    FUSEC_TRY(ValueId y, c.binary(OpKind::Mul, read, c.scalar(DType::F32, scale())));
    return std::vector<ValueId>{state, c.cast(y, n.type(0))};
  }

  double scale() {
    const double given = n.attrFloat("scale", 0.0);
    return given != 0 ? given : 1 / std::sqrt(static_cast<double>(keySize));
  }

  Result<std::vector<ValueId>> scan(ValueId start) {
    std::vector<ValueId> in{start};
    in.insert(in.end(), scanned.begin(), scanned.end());
    std::vector<TypedShape> types{{DType::F32, n.shapeOf(start)}};
    for (ValueId x : scanned)
      types.push_back({n.typeOf(x), withoutTokens(n.shapeOf(x))});
    FUSEC_TRY(Region body,
              n.graphBuilder().makeRegion(types, [&](const std::vector<ValueId> &given) {
                return step(given[0], {given.begin() + 1, given.end()});
              }));
    using Ints = std::vector<int64_t>;
    const size_t count = scanned.size();
    std::vector<Region> regions;
    regions.push_back(std::move(body));
    return n.emit(OpKind::Scan, in,
                  {{"num_scan_inputs", static_cast<int64_t>(count)},
                   {"scan_input_axes", Ints(count, 1)},
                   {"scan_input_directions", Ints(count, 0)},
                   {"scan_output_axes", Ints{1}},
                   {"scan_output_directions", Ints{0}}},
                  {}, std::move(regions));
  }

  NodeImporter &n;
  Compose c;
  bool gated = false, corrected = false;
  int64_t keyHeads = 0, sharing = 0; // query heads for each key head
  int64_t keySize = 0, valueSize = 0;
  DimExpr tokens;
  std::vector<ValueId> scanned; // [B, tokens, ...]: q, k, v, and what there is of decay and beta
};

} // namespace

Status linearAttention(NodeImporter &n) { return LinearAttentionImporter(n).run(); }

} // namespace fusec

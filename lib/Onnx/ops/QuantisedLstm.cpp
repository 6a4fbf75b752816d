#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"
#include "Onnx/ops/Activations.h"
#include "Onnx/ops/Quantised.h"
#include "Support/Diag.h"

// DynamicQuantizeLSTM: an LSTM whose weights are bytes, W [dirs,I,4H] and R [dirs,H,4H]. Its input is quantised as a
// whole, its state anew in each step, both as DynamicQuantizeLinear does, so that both products are of bytes. Each
// direction is a Scan over the steps:
//
//   gates = bytes(x) W * (scaleX * scaleW) + bias           before the Scan, [T,B,4H], in the order i, o, f, c
//   step:  g = gates[t] + bytes(h) R * (scaleH * scaleR);   then as in any LSTM

namespace fusec {
namespace {

class QuantisedLstm {
public:
  explicit QuantisedLstm(NodeImporter &n) : n(n), c(n), q(n) {}

  Status run() {
    FUSEC_CHECK(readAttributes());
    FUSEC_CHECK(checkOperands());
    FUSEC_TRY(std::vector<ValueId> x, q.dynamic(n.id(0)));
    std::vector<ValueId> parts[3]; // of Y, Y_h and Y_c, one a direction
    for (int64_t d = 0; d < directions; ++d) {
      FUSEC_TRY(std::vector<ValueId> made, direction(d, x));
      parts[0].push_back(n.reshape(made[2], {steps, DimExpr(1), batch, DimExpr(hidden)}));
      for (size_t s = 0; s < 2; ++s)
        parts[1 + s].push_back(n.reshape(made[s], {DimExpr(1), batch, DimExpr(hidden)}));
    }
    for (size_t i = 0; i < 3; ++i)
      if (n.wants(i))
        n.result(i, directions == 1 ? parts[i][0] : c.concat(parts[i], i == 0 ? 1 : 0));
    return success();
  }

private:
  Status readAttributes() {
    std::string text = n.attrString("direction", "forward");
    if (text != "forward" && text != "reverse" && text != "bidirectional")
      return n.fail(Diag::BadAttribute, "direction must be forward, reverse or bidirectional");
    reverse = text == "reverse";
    directions = text == "bidirectional" ? 2 : 1;
    clip = n.attrFloat("clip", 0.0);
    coupled = n.attrInt("input_forget", 0) != 0;
    std::vector<std::string> names = n.attrStrings("activations");
    std::vector<double> alphas = n.attrFloats("activation_alpha"),
                        betas = n.attrFloats("activation_beta");
    if (names.empty())
      for (int64_t d = 0; d < directions; ++d)
        names.insert(names.end(), {"Sigmoid", "Tanh", "Tanh"});
    if (names.size() != 3 * static_cast<size_t>(directions))
      return n.fail(Diag::BadAttribute, "activations must name 3 functions a direction");
    FUSEC_TRY(activations, namedActivations(n, names, alphas, betas, /*defaults=*/false));
    return success();
  }

  Status checkOperands() {
    for (size_t i : {0, 3, 5, 6, 7, 8, 10})
      FUSEC_CHECK(q.floats(i));
    for (size_t i : {1, 2}) {
      FUSEC_CHECK(q.bytes(i));
      FUSEC_CHECK(q.bytes(i == 1 ? 9 : 11, n.type(i)));
    }
    if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3)
      return n.mismatch("x, W and R must have rank 3");
    const DimExpr own = n.shape(2)[1];
    if (!own.isConst() && !n.hasAttribute("hidden_size"))
      return n.needsFixed("the weights must have a fixed shape", {own});
    hidden = n.attrInt("hidden_size", own.isConst() ? own.constValue() : 0);
    const char *text = "hidden_size must be R's second size, of at most 2^31";
    if (hidden > int64_t(1) << 31)
      return n.mismatch(text);
    FUSEC_CHECK(n.sizes().sameShape({own}, {DimExpr(hidden)}, text));
    steps = n.shape(0)[0];
    batch = n.shape(0)[1];
    DimExpr dirs(directions), gates(4 * hidden);
    Shape state{dirs, batch, DimExpr(hidden)};
    const std::pair<size_t, Shape> expected[] = {{1, {dirs, n.shape(0)[2], gates}},
                                                 {2, {dirs, DimExpr(hidden), gates}},
                                                 {3, {dirs, DimExpr(8 * hidden)}},
                                                 {4, {batch}},
                                                 {5, state},
                                                 {6, state},
                                                 {7, {dirs, DimExpr(3 * hidden)}}};
    for (const auto &[i, shape] : expected)
      if (n.has(i))
        FUSEC_CHECK(n.sizes().sameShape(n.shape(i), shape,
                                        "input " + std::to_string(i) + " must be " +
                                            typeText(n.type(i), shape, n.symbols())));
    for (size_t i = 8; i < 12; ++i) {
      const Shape one{dirs}, each{dirs, gates};
      FUSEC_CHECK(n.sizes().sameShape(n.shape(i), n.rank(i) == 2 ? each : one,
                                      "input " + std::to_string(i) + " must be " +
                                          typeText(n.type(i), one, n.symbols()) + " or " +
                                          typeText(n.type(i), each, n.symbols())));
    }
    return checkLengths();
  }

  /// A shorter sequence would change what its whole batch is quantised to.
  Status checkLengths() {
    if (!n.has(4))
      return success();
    auto lengths = n.ints(4);
    bool whole = lengths.has_value();
    for (size_t i = 0; whole && i < lengths->size(); ++i)
      whole = steps.isConst((*lengths)[i]);
    if (!whole)
      return n.unsupported("sequence_lens other than the number of steps");
    return success();
  }

  /// Entry `d` of the leading axis of input `i`, without that axis.
  ValueId ofDirection(size_t i, int64_t d) {
    Shape shape = n.shape(i);
    ValueId part = shape[0].isConst(1) ? n.id(i) : c.slice(n.id(i), 0, d, 1);
    shape.erase(shape.begin());
    return n.reshape(part, shape);
  }

  /// Elements [begin, begin + count) of the last axis.
  ValueId columns(ValueId x, int64_t begin, int64_t count) {
    return c.slice(x, static_cast<int64_t>(n.shapeOf(x).size()) - 1, begin, count);
  }

  /// x as bytes, its scale and zero point, times weights `w` of direction `d`.
  Result<ValueId> scaledProduct(const std::vector<ValueId> &x, size_t w, int64_t d) {
    size_t scale = w == 1 ? 8 : 10;
    FUSEC_TRY(ValueId sum, q.product(x[0], ofDirection(w, d), x[2], ofDirection(scale + 1, d)));
    FUSEC_TRY(ValueId factor, c.binary(OpKind::Mul, x[1], ofDirection(scale, d)));
    return c.binary(OpKind::Mul, q.f32(sum), factor);
  }

  ValueId initial(size_t i, int64_t d) {
    if (n.has(i))
      return ofDirection(i, d);
    return c.filled(DType::F32, 0, {batch, DimExpr(hidden)});
  }

  /// Last h, last c, all h: [B,H], [B,H], [T,B,H].
  Result<std::vector<ValueId>> direction(int64_t d, const std::vector<ValueId> &x) {
    FUSEC_TRY(ValueId gates, scaledProduct(x, 1, d));
    if (n.has(3)) {
      ValueId both = ofDirection(3, d);
      FUSEC_TRY(ValueId bias, c.binary(OpKind::Add, columns(both, 0, 4 * hidden),
                                       columns(both, 4 * hidden, 4 * hidden)));
      FUSEC_TRY(gates, c.binary(OpKind::Add, gates, bias));
    }
    TypedShape state{DType::F32, {batch, DimExpr(hidden)}};
    ValueId h0 = initial(5, d), c0 = initial(6, d);
    FUSEC_TRY(Region body, step(d, state));
    std::vector<Region> regions;
    regions.push_back(std::move(body));
    std::vector<int64_t> first{0}, backward{reverse || d == 1};
    return n.emit(OpKind::Scan, {h0, c0, gates},
                  {{"num_scan_inputs", int64_t(1)},
                   {"scan_input_axes", first},
                   {"scan_input_directions", backward},
                   {"scan_output_axes", first},
                   {"scan_output_directions", backward}},
                  {}, std::move(regions));
  }

  /// The body of the Scan: h, c and a step's gates to h, c and h.
  Result<Region> step(int64_t d, const TypedShape &state) {
    TypedShape gates{DType::F32, {batch, DimExpr(4 * hidden)}};
    return n.graphBuilder().makeRegion(
        {state, state, gates}, [&](const std::vector<ValueId> &in) -> Result<std::vector<ValueId>> {
          FUSEC_TRY(auto next, states(d, in[0], in[1], in[2]));
          return std::vector<ValueId>{next.first, next.second, next.first};
        });
  }

  Result<ValueId> gate(int64_t d, size_t function, ValueId x) {
    if (clip > 0)
      x = c.like(OpKind::Clip, {x, c.scalar(DType::F32, -clip), c.scalar(DType::F32, clip)});
    return activations[3 * static_cast<size_t>(d) + function](n, x);
  }

  /// x + state * (peephole `part`, in the order i, o, f).
  Result<ValueId> peephole(int64_t d, ValueId x, int64_t part, ValueId state) {
    if (!n.has(7))
      return x;
    FUSEC_TRY(ValueId term,
              c.binary(OpKind::Mul, columns(ofDirection(7, d), part * hidden, hidden), state));
    return c.binary(OpKind::Add, x, term);
  }

  /// h and c behind a step.
  Result<std::pair<ValueId, ValueId>> states(int64_t d, ValueId h, ValueId cell, ValueId gates) {
    FUSEC_TRY(std::vector<ValueId> bytes, q.dynamic(h));
    FUSEC_TRY(ValueId recurrent, scaledProduct(bytes, 2, d));
    FUSEC_TRY(ValueId all, c.binary(OpKind::Add, gates, recurrent));
    FUSEC_TRY(ValueId in, peephole(d, columns(all, 0, hidden), 0, cell));
    FUSEC_TRY(in, gate(d, 0, in));
    ValueId forget;
    if (coupled) {
      FUSEC_TRY(forget, c.binary(OpKind::Sub, c.scalar(DType::F32, 1), in));
    } else {
      FUSEC_TRY(forget, peephole(d, columns(all, 2 * hidden, hidden), 2, cell));
      FUSEC_TRY(forget, gate(d, 0, forget));
    }
    FUSEC_TRY(ValueId candidate, gate(d, 1, columns(all, 3 * hidden, hidden)));
    FUSEC_TRY(ValueId kept, c.binary(OpKind::Mul, forget, cell));
    FUSEC_TRY(ValueId added, c.binary(OpKind::Mul, in, candidate));
    FUSEC_TRY(ValueId nextCell, c.binary(OpKind::Add, kept, added));
    FUSEC_TRY(ValueId out, peephole(d, columns(all, hidden, hidden), 1, nextCell));
    FUSEC_TRY(out, gate(d, 0, out));
    FUSEC_TRY(ValueId shown, activations[3 * static_cast<size_t>(d) + 2](n, nextCell));
    FUSEC_TRY(ValueId nextState, c.binary(OpKind::Mul, out, shown));
    return std::pair(nextState, nextCell);
  }

  NodeImporter &n;
  Compose c;
  Quantised q;
  bool reverse = false, coupled = false;
  int64_t directions = 1, hidden = 0;
  double clip = 0; // 0: none
  std::vector<NamedActivation> activations;
  DimExpr steps, batch;
};

Status dynamicQuantizeLstm(NodeImporter &n) { return QuantisedLstm(n).run(); }

constexpr OpRow kRows[] = {
    {"DynamicQuantizeLSTM", 1, 1, 12, 12, 3, dynamicQuantizeLstm,
     "all sequences have the full length", 0b11111000},
};

} // namespace

std::span<const OpRow> quantisedRecurrentOps() { return kRows; }

} // namespace fusec

#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"
#include "Onnx/ops/Activations.h"
#include "Support/Diag.h"

// LSTM, GRU and RNN. Results have layout 0: x [T, B, I], Y [T, dirs, B, H], states [dirs, B, H]. Layout 1
// (batch first) is transposed on the way in and out.

namespace fusec {
namespace {

struct Cell {
  OpKind op;
  std::vector<std::string> defaults; // activations of one direction
};

Status recurrent(NodeImporter &n, const Cell &cell) {
  std::string direction = n.attrString("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.fail(Diag::BadAttribute, "direction must be forward, reverse or bidirectional");
  int64_t dirs = direction == "bidirectional" ? 2 : 1;
  bool batchFirst = n.attrInt("layout", 0) != 0;
  n.ignore("output_sequence"); // before opset 7: whether Y is wanted, which its name says as well
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3)
    return n.mismatch("x, W and R must have rank 3");
  if (!n.shape(2)[2].isConst())
    return n.needsFixed("the weights must have a fixed shape", {n.shape(2)[2]});
  int64_t hidden = n.attrInt("hidden_size", n.shape(2)[2].constValue());
  std::vector<ValueId> in = n.ids();
  in.resize(cell.op == OpKind::LSTM ? 8 : 6, kNoValue);
  Compose make(n);
  if (n.has(4)) {
    FUSEC_TRY(const ValueId steps, make.extent(n.id(0), batchFirst ? 1 : 0));
    FUSEC_CHECK(requireBetween(n, n.id(4), make.integer(0), steps, DataTest::Lengths));
  }
  if (batchFirst) {
    in[0] = Compose(n).transpose(in[0], {1, 0, 2});
    for (size_t i = 5; i < std::min<size_t>(in.size(), 7); ++i)
      if (in[i] != kNoValue)
        in[i] = Compose(n).transpose(in[i], {1, 0, 2});
  }
  // One state, or one length, for all of the batch, unless a later node has no use for more than one.
  const DimExpr batch = n.shapeOf(in[0])[1];
  for (auto [i, axis] : {std::pair<size_t, size_t>{4, 0}, {5, 1}, {6, 1}}) {
    if (i >= in.size() || in[i] == kNoValue)
      continue;
    Shape shape = n.shapeOf(in[i]);
    if (axis >= shape.size() || !shape[axis].isConst(1) || batch.isConst(1))
      continue;
    const bool mayBeMore =
        batch.isConst() ||
        n.require({SizeRule::Kind::Broadcast, shape[axis], batch, {}, {}, ""}, Need::Case);
    if (!mayBeMore)
      continue; // the operator's rule makes the batch 1
    shape[axis] = batch;
    in[i] = Compose(n).expand(in[i], std::move(shape));
  }
  std::vector<std::string> activations = n.attrStrings("activations");
  if (activations.empty())
    for (int64_t d = 0; d < dirs; ++d)
      activations.insert(activations.end(), cell.defaults.begin(), cell.defaults.end());
  FUSEC_TRY(const std::vector<NamedActivation> functions,
            namedActivations(n, activations, n.attrFloats("activation_alpha"),
                             n.attrFloats("activation_beta"), /*defaults=*/true));
  std::vector<double> alphas, betas;
  for (size_t i = 0; i < functions.size(); ++i) {
    activations[i] = functions[i].name;
    alphas.push_back(functions[i].alpha);
    betas.push_back(functions[i].beta);
  }
  Attributes attrs{{"direction", direction},     {"hidden_size", hidden},
                   {"activations", activations}, {"activation_alpha", alphas},
                   {"activation_beta", betas},   {"clip", n.attrFloat("clip", 0.0)}};
  if (cell.op == OpKind::LSTM)
    attrs.emplace("input_forget", n.attrInt("input_forget", 0));
  if (cell.op == OpKind::GRU)
    attrs.emplace("linear_before_reset", n.attrInt("linear_before_reset", 0));
  while (in.back() == kNoValue)
    in.pop_back();
  if (!batchFirst)
    return n.finish(cell.op, std::move(in), std::move(attrs));
  FUSEC_TRY(std::vector<ValueId> results, n.emit(cell.op, std::move(in), std::move(attrs)));
  for (size_t i = 0; i < results.size(); ++i)
    if (n.wants(i))
      n.result(i, i == 0 ? Compose(n).transpose(results[0], {2, 0, 1, 3})
                         : Compose(n).transpose(results[i], {1, 0, 2}));
  return success();
}

Status lstm(NodeImporter &n) { return recurrent(n, {OpKind::LSTM, {"Sigmoid", "Tanh", "Tanh"}}); }
Status gru(NodeImporter &n) { return recurrent(n, {OpKind::GRU, {"Sigmoid", "Tanh"}}); }
Status rnn(NodeImporter &n) { return recurrent(n, {OpKind::RNN, {"Tanh"}}); }

constexpr OpRow kRows[] = {
    {"GRU", 3, kNewestOpset, 3, 6, 2, gru},
    {"LSTM", 1, kNewestOpset, 3, 8, 3, lstm},
    {"RNN", 1, kNewestOpset, 3, 6, 2, rnn},
};

} // namespace

std::span<const OpRow> recurrentOps() { return kRows; }

} // namespace fusec

#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

namespace fusec {

namespace {

/// scores[N, C, d...] are log-probabilities, target[N, d...] classes: loss = -weight[target] * score[target],
/// reduced as the attribute says (mean divides by the sum of the weights).
Result<TensorValue> negativeLogLikelihood(const OpCall &call, const TensorValue &scores) {
  const TensorValue &target = call.in(1);
  if (scores.rank() < 2 || target.rank() != scores.rank() - 1)
    return call.fail("scores and target do not fit", Diag::ShapeMismatch);
  AxisView v(scores.dims, 1);
  bool ignores = call.node.hasAttr("ignore_index");
  int64_t ignored = ignores ? call.node.intAttr("ignore_index") : 0;
  TensorValue loss(scores.type, target.dims);
  double sum = 0, weights = 0;
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      auto at = static_cast<size_t>(o * v.inner + i);
      int64_t c = target.ints[at];
      if (ignores && c == ignored)
        continue;
      if (c < 0 || c >= v.extent)
        return call.fail("class " + std::to_string(c) + " is outside 0.." +
                         std::to_string(v.extent - 1));
      double weight = call.has(2) ? call.in(2).floats[static_cast<size_t>(c)] : 1;
      loss.floats[at] = -weight * scores.floats[static_cast<size_t>(v.index(o, c, i))];
      sum += loss.floats[at];
      weights += weight;
    }
  const std::string &reduction = call.node.stringAttr("reduction");
  if (reduction == "none")
    return loss;
  TensorValue scalar(scores.type, {});
  scalar.floats[0] = reduction == "mean" ? sum / weights : sum;
  return scalar;
}

Result<Outputs> negativeLogLikelihoodLoss(const OpCall &call) {
  FUSEC_TRY(TensorValue loss, negativeLogLikelihood(call, call.in(0)));
  return Outputs{std::move(loss)};
}

/// Output 1: the log-softmax of the scores over axis 1.
Result<Outputs> softmaxCrossEntropyLoss(const OpCall &call) {
  TensorValue logs = call.in(0);
  if (logs.rank() < 2)
    return call.fail("scores must have a class axis", Diag::ShapeMismatch);
  AxisView v(logs.dims, 1);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      double top = -INFINITY, sum = 0;
      for (int64_t c = 0; c < v.extent; ++c)
        top = std::fmax(top, logs.floats[static_cast<size_t>(v.index(o, c, i))]);
      for (int64_t c = 0; c < v.extent; ++c)
        sum += std::exp(logs.floats[static_cast<size_t>(v.index(o, c, i))] - top);
      for (int64_t c = 0; c < v.extent; ++c)
        logs.floats[static_cast<size_t>(v.index(o, c, i))] -= top + std::log(sum);
    }
  FUSEC_TRY(TensorValue loss, negativeLogLikelihood(call, logs));
  return Outputs{std::move(loss), std::move(logs)};
}

} // namespace

void addMiscLosses(OpTable &t) {
  entry(t, OpKind::NegativeLogLikelihoodLoss) = negativeLogLikelihoodLoss;
  entry(t, OpKind::SoftmaxCrossEntropyLoss) = softmaxCrossEntropyLoss;
}

} // namespace fusec

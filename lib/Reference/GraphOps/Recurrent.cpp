#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <cmath>

// LSTM, GRU and RNN share everything but the cell: time steps, directions, sequence lengths and the placement of
// results. Operands: X[T, B, I], W[D, gates*H, I], R[D, gates*H, H], bias[D, 2*gates*H].

namespace fusec {

namespace {

using Vector = std::vector<double>;

/// An activation function with its parameters.
struct Activation {
  std::string name;
  double alpha, beta;

  double operator()(double x) const {
    if (name == "Sigmoid")
      return 1 / (1 + std::exp(-x));
    if (name == "Tanh")
      return std::tanh(x);
    if (name == "Relu")
      return x < 0 ? 0 : x;
    if (name == "Affine")
      return alpha * x + beta;
    if (name == "LeakyRelu")
      return x < 0 ? alpha * x : x;
    if (name == "ThresholdedRelu")
      return x >= alpha ? x : 0;
    if (name == "ScaledTanh")
      return alpha * std::tanh(beta * x);
    if (name == "HardSigmoid")
      return std::fmin(std::fmax(alpha * x + beta, 0), 1);
    if (name == "Elu")
      return x < 0 ? alpha * std::expm1(x) : x;
    if (name == "Softsign")
      return x / (1 + std::fabs(x));
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); // Softplus
  }
};

/// Sizes and the weights of one direction.
struct Layer {
  int64_t steps, batch, inputs, hidden, gates;
  const double *w, *r, *bias, *peephole; // bias, peephole: nullptr if absent
  const Activation *f;
  double clip;

  double clipped(double v) const {
    return clip > 0 ? (v > clip ? clip : v < -clip ? -clip : v) : v;
  }
  double bound(const Activation &a, double v) const { return a(clipped(v)); }
  /// Row `gate*H + j` of W times x.
  double input(int64_t gate, int64_t j, const double *x) const {
    double s = 0;
    for (int64_t i = 0; i < inputs; ++i)
      s += w[(gate * hidden + j) * inputs + i] * x[i];
    return s;
  }
  double recurrent(int64_t gate, int64_t j, const double *h) const {
    double s = 0;
    for (int64_t i = 0; i < hidden; ++i)
      s += r[(gate * hidden + j) * hidden + i] * h[i];
    return s;
  }
  double inputBias(int64_t gate, int64_t j) const { return bias ? bias[gate * hidden + j] : 0; }
  double recurrentBias(int64_t gate, int64_t j) const {
    return bias ? bias[(gates + gate) * hidden + j] : 0;
  }
  double biasOf(int64_t gate, int64_t j) const {
    return inputBias(gate, j) + recurrentBias(gate, j);
  }
};

/// One step of one batch row: h and c are replaced.
using Cell = void (*)(const OpCall &, const Layer &, const double *x, double *h, double *c);

/// Gates i, o, f, c.
void lstmCell(const OpCall &call, const Layer &l, const double *x, double *h, double *c) {
  Vector nextH(static_cast<size_t>(l.hidden)), nextC(nextH);
  bool coupled = call.node.intAttr("input_forget");
  for (int64_t j = 0; j < l.hidden; ++j) {
    auto gate = [&](int64_t g) { return l.input(g, j, x) + l.recurrent(g, j, h) + l.biasOf(g, j); };
    auto peep = [&](int64_t g, double cell) {
      return l.peephole ? l.peephole[g * l.hidden + j] * cell : 0;
    };
    double i = l.bound(l.f[0], gate(0) + peep(0, c[j]));
    double f = coupled ? 1 - i : l.bound(l.f[0], gate(2) + peep(2, c[j]));
    double cell = f * c[j] + i * l.bound(l.f[1], gate(3));
    double o = l.bound(l.f[0], gate(1) + peep(1, cell));
    nextC[static_cast<size_t>(j)] = cell;
    nextH[static_cast<size_t>(j)] = o * l.bound(l.f[2], cell);
  }
  std::copy(nextH.begin(), nextH.end(), h);
  std::copy(nextC.begin(), nextC.end(), c);
}

/// Gates z, r, h.
void gruCell(const OpCall &call, const Layer &l, const double *x, double *h, double *) {
  Vector z(static_cast<size_t>(l.hidden)), r(z), next(z), reset(z);
  bool linearFirst = call.node.intAttr("linear_before_reset");
  for (int64_t j = 0; j < l.hidden; ++j) {
    auto q = static_cast<size_t>(j);
    z[q] = l.bound(l.f[0], l.input(0, j, x) + l.recurrent(0, j, h) + l.biasOf(0, j));
    r[q] = l.bound(l.f[0], l.input(1, j, x) + l.recurrent(1, j, h) + l.biasOf(1, j));
    reset[q] = r[q] * h[j];
  }
  for (int64_t j = 0; j < l.hidden; ++j) {
    auto q = static_cast<size_t>(j);
    double recurrent = linearFirst ? r[q] * (l.recurrent(2, j, h) + l.recurrentBias(2, j))
                                   : l.recurrent(2, j, reset.data()) + l.recurrentBias(2, j);
    double candidate = l.bound(l.f[1], l.input(2, j, x) + recurrent + l.inputBias(2, j));
    next[q] = (1 - z[q]) * candidate + z[q] * h[j];
  }
  std::copy(next.begin(), next.end(), h);
}

void rnnCell(const OpCall &, const Layer &l, const double *x, double *h, double *) {
  Vector next(static_cast<size_t>(l.hidden));
  for (int64_t j = 0; j < l.hidden; ++j)
    next[static_cast<size_t>(j)] =
        l.bound(l.f[0], l.input(0, j, x) + l.recurrent(0, j, h) + l.biasOf(0, j));
  std::copy(next.begin(), next.end(), h);
}

/// Steps beyond a row's sequence length give zeros in Y and leave the state; the reverse direction starts at
/// the row's last valid step.
Result<Outputs> recur(const OpCall &call, int64_t gates, size_t activationsPerDirection,
                      Cell cell) {
  const TensorValue &x = call.in(0), &w = call.in(1), &r = call.in(2);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    return call.fail("expects X, W and R of rank 3", Diag::ShapeMismatch);
  const auto &names = std::get<std::vector<std::string>>(call.node.attributes.at("activations"));
  const auto &alphas = std::get<Vector>(call.node.attributes.at("activation_alpha"));
  const auto &betas = std::get<Vector>(call.node.attributes.at("activation_beta"));
  std::vector<Activation> activations;
  for (size_t i = 0; i < names.size(); ++i)
    activations.push_back({names[i], alphas[i], betas[i]});
  const std::string &direction = call.node.stringAttr("direction");
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  int64_t steps = x.dims[0], batch = x.dims[1], inputs = x.dims[2],
          hidden = call.node.intAttr("hidden_size");
  Dims stateDims{directions, batch, hidden};
  if (w.dims != Dims{directions, gates * hidden, inputs} ||
      r.dims != Dims{directions, gates * hidden, hidden} ||
      activations.size() != activationsPerDirection * static_cast<size_t>(directions))
    return call.fail("weights, activations and hidden_size do not fit", Diag::ShapeMismatch);
  TensorValue y(x.type, {steps, directions, batch, hidden}), h(x.type, stateDims),
      c(x.type, stateDims);
  if (call.has(5))
    h.floats = call.in(5).floats;
  if (call.has(6))
    c.floats = call.in(6).floats;
  for (int64_t d = 0; d < directions; ++d) {
    Layer l{steps,
            batch,
            inputs,
            hidden,
            gates,
            w.floats.data() + d * gates * hidden * inputs,
            r.floats.data() + d * gates * hidden * hidden,
            call.has(3) ? call.in(3).floats.data() + d * 2 * gates * hidden : nullptr,
            call.has(7) ? call.in(7).floats.data() + d * 3 * hidden : nullptr,
            activations.data() + static_cast<size_t>(d) * activationsPerDirection,
            call.node.floatAttr("clip")};
    bool reverse = d == 1 || direction == "reverse";
    for (int64_t b = 0; b < batch; ++b) {
      int64_t length = call.has(4) ? call.in(4).ints[static_cast<size_t>(b)] : steps;
      if (length < 0 || length > steps)
        return call.fail("a sequence length is outside 0.." + std::to_string(steps));
      int64_t state = (d * batch + b) * hidden;
      for (int64_t t = 0; t < length; ++t) {
        int64_t at = reverse ? length - 1 - t : t;
        cell(call, l, x.floats.data() + (at * batch + b) * inputs, h.floats.data() + state,
             c.floats.data() + state);
        for (int64_t j = 0; j < hidden; ++j)
          y.floats[static_cast<size_t>(((at * directions + d) * batch + b) * hidden + j)] =
              h.floats[static_cast<size_t>(state + j)];
      }
    }
  }
  return Outputs{std::move(y), std::move(h), std::move(c)};
}

Result<Outputs> lstm(const OpCall &call) { return recur(call, 4, 3, lstmCell); }
Result<Outputs> gru(const OpCall &call) { return recur(call, 3, 2, gruCell); }
Result<Outputs> rnn(const OpCall &call) { return recur(call, 1, 1, rnnCell); }

} // namespace

void addRecurrent(OpTable &t) {
  entry(t, OpKind::LSTM) = lstm;
  entry(t, OpKind::GRU) = gru;
  entry(t, OpKind::RNN) = rnn;
}

} // namespace fusec

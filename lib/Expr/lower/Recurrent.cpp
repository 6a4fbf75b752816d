// LSTM, GRU and RNN. The products with W for all steps are one contraction before the scan, with both biases
// added there. Each step then is a contraction over the hidden state and maps for gates and states:
//
//   %xw[t,b,g,j] = sum_i X[t,b,i]*W[d,g*H+j,i];  %in[t,b,g,j] = %xw[t,b,g,j] + B[d,g*H+j] + B[d,(G+g)*H+j]
//   scan t: %rh[b,g,j] = sum_k %h[b,k]*R[d,g*H+j,k];  states [b,j] = maps of %in[t,b,.,j] + %rh[b,.,j]
//
// Gates have an axis of their own: whoever makes the states of some j needs the gates of these j alone.
// Steps behind a sequence's length keep the state and give zeros. The reverse direction is a reversed scan: with
// lengths it starts, for each sequence, at that sequence's last step, because the steps before it change nothing.
// Everything inside is computed in at least f32.
#include "Expr/lower/Recurrent.h"

namespace fusec::lower {

Val Activation::operator()(Val x) const {
  if (name == "Sigmoid")
    return sigmoid(x);
  if (name == "Tanh")
    return tanh(x);
  if (name == "Relu")
    return max(x, 0);
  if (name == "Affine")
    return x * alpha + beta;
  if (name == "LeakyRelu")
    return select(lt(x, 0), x * alpha, x);
  if (name == "ThresholdedRelu")
    return select(lt(x, alpha), x.like(0), x);
  if (name == "ScaledTanh")
    return tanh(x * beta) * alpha;
  if (name == "HardSigmoid")
    return max(min(x * alpha + beta, 1), 0);
  if (name == "Elu")
    return select(lt(x, 0), expm1(x) * alpha, x);
  if (name == "Softsign")
    return x / (abs(x) + 1);
  return max(x, 0) + log1p(exp(-abs(x))); // Softplus; the importer admits no other name
}

RecurrentCell::RecurrentCell(NodeLowering &n, int64_t gates, int64_t direction)
    : n(n), d(direction), gates(gates), hidden(n.node.intAttr("hidden_size")),
      t(computeType(n.type(0))), steps(n.shape(0)[0]), batch(n.shape(0)[1]),
      clip(n.node.floatAttr("clip")) {
  const std::string &name = n.node.stringAttr("direction");
  bool backward = name == "reverse" || d == 1;
  prefix = backward ? "bw." : "fw.";
  const auto &functions = std::get<std::vector<std::string>>(n.node.attributes.at("activations"));
  const auto &alphas = std::get<std::vector<double>>(n.node.attributes.at("activation_alpha"));
  const auto &betas = std::get<std::vector<double>>(n.node.attributes.at("activation_beta"));
  const size_t each = functions.size() / (name == "bidirectional" ? 2 : 1);
  for (size_t i = static_cast<size_t>(d) * each; activations.size() < each; ++i)
    activations.push_back({functions[i], alphas[i], betas[i]});
  scan.kind = EquationKind::Scan;
  scan.onnxNodes = {n.node.name};
  scan.steps = steps;
  scan.reversed = backward;
}

TensorId RecurrentCell::temp(const std::string &suffix, Shape shape) {
  return n.temp(prefix + suffix, t, std::move(shape));
}

Val RecurrentCell::weight(EquationBuilder &b, size_t input, const std::vector<Val> &at) {
  return cast(t, b.read(n.in(input), concat({b.index(d)}, at)));
}

Val RecurrentCell::gateWeight(EquationBuilder &b, size_t input, Val gate,
                              const std::vector<Val> &at) {
  const ConstantRef constant = n.l.program.tensors[n.in(input)].constant;
  if (!constant) {
    std::vector<Val> row = at;
    row[0] = gate * double(hidden) + at[0];
    return weight(b, input, row);
  }
  auto [view, isNew] = views.try_emplace(input, -1);
  if (isNew) {
    std::vector<int64_t> dims = constant->dims;
    dims[1] /= hidden;
    dims.insert(dims.begin() + 2, hidden);
    view->second = n.l.constant(n.l.program.tensors[n.in(input)].name + ".gates",
                                makeConstantView(constant->type, dims, constant->bytes,
                                                 constant->sizeBytes, constant->owner));
  }
  return cast(t, b.read(view->second, concat({b.index(d), gate}, at)));
}

void RecurrentCell::projectInput(int64_t biasedRecurrent) {
  Shape shape{steps, batch, gates, hidden};
  TensorId xw = temp("xw", shape);
  n.reduce(xw, Monoid::Sum, [&](EquationBuilder &b) {
    Val i = b.reduction(n.shape(0)[2]);
    return cast(t, b.read(n.in(0), {b.axis(0), b.axis(1), i})) *
           gateWeight(b, 1, b.axis(2), {b.axis(3), i});
  });
  projected = xw;
  if (!n.has(3))
    return;
  projected = n.map(temp("in", shape), [&](EquationBuilder &b) {
    Val g = b.axis(2), wb = gateWeight(b, 3, g, {b.axis(3)});
    Val rb = gateWeight(b, 3, g + double(gates), {b.axis(3)});
    if (biasedRecurrent < gates)
      rb = select(lt(g, double(biasedRecurrent)), rb, rb.like(0));
    return b.read(xw, b.axes) + (wb + rb);
  });
}

TensorId RecurrentCell::carry(const std::string &name, size_t initialInput) {
  Shape shape{batch, hidden};
  TensorId init = n.map(temp(name + "0", shape), [&](EquationBuilder &b) {
    return n.has(initialInput) ? weight(b, initialInput, b.axes) : b.constant(t, 0);
  });
  TensorId previous = temp(name, shape), next = temp(name + ".next", shape);
  TensorId last = temp(name + ".last", shape);
  scan.carries.push_back({init, previous, next, last});
  return previous;
}

TensorId RecurrentCell::recur(TensorId state, const std::string &name, int64_t firstGate,
                              int64_t count) {
  TensorId rh = temp(name, {batch, count, hidden});
  n.reduce(rh, Monoid::Sum, [&](EquationBuilder &b) {
    Val k = b.reduction(hidden), gate = b.axis(1) + double(firstGate);
    return b.read(state, {b.axis(0), k}) * gateWeight(b, 2, gate, {b.axis(2), k});
  });
  return rh;
}

Val RecurrentCell::input(EquationBuilder &b, int64_t gate) {
  return b.read(projected, {b.step(), b.axis(0), b.index(DimExpr(gate)), b.axis(1)});
}

Val RecurrentCell::gateOf(EquationBuilder &b, TensorId tensor, int64_t gate) {
  return b.read(tensor, {b.axis(0), b.index(DimExpr(gate)), b.axis(1)});
}

Val RecurrentCell::clipped(Val x) { return clip > 0 ? max(min(x, clip), -clip) : x; }

Val RecurrentCell::valid(EquationBuilder &b) {
  return n.has(4) ? lt(b.step(), cast(DType::I64, b.read(n.in(4), {b.axis(0)}))) : Val{};
}

void RecurrentCell::run(const std::function<void()> &body) {
  std::vector<Item> items = n.l.nested([&] {
    n.l.scanSteps = &scan.steps;
    body();
    TensorId y = scan.carries[0].next;
    if (n.wants(0)) {
      if (n.has(4)) {
        TensorId state = y;
        y = n.map(temp("y", {batch, hidden}), [&](EquationBuilder &b) {
          return select(valid(b), b.read(state, b.axes), b.constant(t, 0));
        });
      }
      stacked = temp("steps", {steps, batch, hidden});
      scan.scanOutputs.push_back({y, stacked});
    }
    n.l.scanSteps = nullptr;
  });
  for (Item &item : items)
    scan.scanBody.push_back(std::move(std::get<Equation>(item.value)));
  for (const ScanCarry &c : scan.carries)
    scan.outputs.push_back(c.final);
  if (stacked >= 0)
    scan.outputs.push_back(stacked);
  scan.name = n.l.program.tensors[scan.outputs.back()].name;
  for (const ScanCarry &c : scan.carries)
    finals.push_back(c.final);
  n.l.items->push_back({std::move(scan)});
}

namespace {

/// One output for both directions: part 0 at index 0 of `axis`, part 1 at index 1.
void assemble(NodeLowering &n, size_t output, size_t axis, const std::vector<TensorId> &parts) {
  if (!n.wants(output))
    return;
  n.map(n.out(output), [&](EquationBuilder &b) {
    std::vector<Val> at = b.axes;
    Val which = at[axis];
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    Val y = b.read(parts[0], at);
    if (parts.size() == 2)
      y = b.readIf(lt(which, 1), parts[0], at,
                   b.readIf(ge(which, 1), parts[1], at, b.constant(n.typeOf(parts[1]), 0)));
    return cast(n.outType(output), y);
  });
}

template <typename F> Status recurrent(NodeLowering &n, int64_t gates, size_t states, F step) {
  int64_t directions = n.node.stringAttr("direction") == "bidirectional" ? 2 : 1;
  std::vector<TensorId> stacked;
  std::vector<std::vector<TensorId>> finals(states);
  for (int64_t d = 0; d < directions; ++d) {
    RecurrentCell cell(n, gates, d);
    step(cell);
    stacked.push_back(cell.stacked);
    for (size_t s = 0; s < states; ++s)
      finals[s].push_back(cell.finals[s]);
  }
  assemble(n, 0, 1, stacked);
  for (size_t s = 0; s < states; ++s)
    assemble(n, 1 + s, 0, finals[s]);
  return success();
}

/// Gates in the order i, o, f, c; peepholes P in the order i, o, f.
void lstmStep(RecurrentCell &cell) {
  NodeLowering &n = cell.n;
  cell.projectInput(4);
  TensorId h = cell.carry("h", 5), c = cell.carry("c", 6);
  TensorId hNext = cell.scan.carries[0].next, cNext = cell.scan.carries[1].next;
  const auto &f = cell.activations;
  bool coupled = n.node.intAttr("input_forget");
  cell.run([&] {
    TensorId rh = cell.recur(h, "rh", 0, 4);
    auto gate = [&](EquationBuilder &b, int64_t g) {
      return cell.input(b, g) + cell.gateOf(b, rh, g);
    };
    auto peephole = [&](EquationBuilder &b, Val x, int64_t g, Val state) {
      return n.has(7) ? x + cell.weight(b, 7, {b.axis(1) + double(g * cell.hidden)}) * state : x;
    };
    n.map(cNext, [&](EquationBuilder &b) {
      Val old = b.read(c, b.axes);
      Val in = f[0](cell.clipped(peephole(b, gate(b, 0), 0, old)));
      Val forget = coupled ? 1.0 - in : f[0](cell.clipped(peephole(b, gate(b, 2), 2, old)));
      Val candidate = f[1](cell.clipped(gate(b, 3)));
      return select(cell.valid(b), forget * old + in * candidate, old);
    });
    n.map(hNext, [&](EquationBuilder &b) {
      Val state = b.read(cNext, b.axes);
      Val out = f[0](cell.clipped(peephole(b, gate(b, 1), 1, state)));
      return select(cell.valid(b), out * f[2](cell.clipped(state)), b.read(h, b.axes));
    });
  });
}

/// Gates in the order z, r, h.
void gruStep(RecurrentCell &cell) {
  NodeLowering &n = cell.n;
  bool linearBeforeReset = n.node.intAttr("linear_before_reset");
  cell.projectInput(linearBeforeReset ? 2 : 3);
  TensorId h = cell.carry("h", 5), hNext = cell.scan.carries[0].next;
  const auto &f = cell.activations;
  cell.run([&] {
    TensorId rh = cell.recur(h, "rh", 0, linearBeforeReset ? 3 : 2), product = rh;
    auto gate = [&](EquationBuilder &b, int64_t g) {
      return f[0](cell.clipped(cell.input(b, g) + cell.gateOf(b, rh, g)));
    };
    if (!linearBeforeReset) {
      TensorId reset = n.map(cell.temp("reset", {cell.batch, cell.hidden}),
                             [&](EquationBuilder &b) { return gate(b, 1) * b.read(h, b.axes); });
      product = cell.recur(reset, "rr", 2, 1);
    }
    n.map(hNext, [&](EquationBuilder &b) {
      Val z = gate(b, 0), x = cell.input(b, 2), old = b.read(h, b.axes);
      if (linearBeforeReset) {
        Val r = cell.gateOf(b, rh, 2);
        if (n.has(3))
          r = r + cell.weight(b, 3, {b.axis(1) + double(5 * cell.hidden)});
        x = x + gate(b, 1) * r;
      } else {
        x = x + cell.gateOf(b, product, 0);
      }
      Val candidate = f[1](cell.clipped(x));
      return select(cell.valid(b), (1.0 - z) * candidate + z * old, old);
    });
  });
}

void rnnStep(RecurrentCell &cell) {
  NodeLowering &n = cell.n;
  cell.projectInput(1);
  TensorId h = cell.carry("h", 5), hNext = cell.scan.carries[0].next;
  cell.run([&] {
    TensorId rh = cell.recur(h, "rh", 0, 1);
    n.map(hNext, [&](EquationBuilder &b) {
      Val y = cell.activations[0](cell.clipped(cell.input(b, 0) + cell.gateOf(b, rh, 0)));
      return select(cell.valid(b), y, b.read(h, b.axes));
    });
  });
}

Status lstm(NodeLowering &n) { return recurrent(n, 4, 2, lstmStep); }
Status gru(NodeLowering &n) { return recurrent(n, 3, 1, gruStep); }
Status rnn(NodeLowering &n) { return recurrent(n, 1, 1, rnnStep); }

} // namespace

void addRecurrent(HandlerTable &table) {
  table[OpKind::LSTM] = lstm;
  table[OpKind::GRU] = gru;
  table[OpKind::RNN] = rnn;
}

} // namespace fusec::lower

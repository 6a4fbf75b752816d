#include "Reference/ExprEquations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusec::machine {
namespace {

/// Running value of a reduction; `index` for the arg monoids.
struct Accumulator {
  ScalarValue value;
  int64_t index = 0;
};

class Reducer {
public:
  Reducer(Monoid monoid, DType type) : monoid(monoid), type(type) {
    Body scratch;
    const Scalar &s = scratch[identityOf(scratch, monoid, type)];
    identity = {{s.imm, s.fimm}, 0};
  }
  Accumulator identity;

  void add(Accumulator &acc, Lane v, int64_t index) const {
    if (!isArgMonoid(monoid)) {
      ScalarValue operands[] = {acc.value,
                                isFloat(type) ? ScalarValue{0, v.f} : ScalarValue{v.i, 0}};
      if (monoid == Monoid::Sum && isFloat(type)) {
        acc.value.f = roundToType(type, acc.value.f + v.f);
        return;
      }
      acc.value = *evaluateScalar(operation(), type, type, operands);
      return;
    }
    // Better: a strictly larger (smaller) value, a NaN before a number, on a tie the lower (higher) index.
    const bool largest = monoid == Monoid::ArgMax || monoid == Monoid::ArgMaxLast;
    const bool last = monoid == Monoid::ArgMaxLast || monoid == Monoid::ArgMinLast;
    ScalarValue now = acc.value,
                candidate = isFloat(type) ? ScalarValue{0, v.f} : ScalarValue{v.i, 0};
    ScalarValue ordered[] = {largest ? now : candidate, largest ? candidate : now};
    bool better = evaluateScalar(ScalarOp::Lt, DType::Bool, type, ordered)->i;
    bool tie = evaluateScalar(ScalarOp::Eq, DType::Bool, type, ordered)->i;
    if (isFloat(type)) {
      better |= std::isnan(candidate.f) && !std::isnan(now.f);
      tie |= std::isnan(candidate.f) && std::isnan(now.f);
    }
    if (better || (tie && (last ? acc.index < index : index < acc.index)))
      acc = {candidate, index};
  }

  /// acc + a*b, rounded once.
  void addProduct(Accumulator &acc, Lane a, Lane b) const {
    if (type == DType::F64) {
      acc.value.f = std::fma(a.f, b.f, acc.value.f);
      return;
    }
    float r = std::fmaf(static_cast<float>(a.f), static_cast<float>(b.f),
                        static_cast<float>(acc.value.f));
    acc.value.f = type == DType::F32 ? r : roundToType(type, r);
  }

private:
  ScalarOp operation() const {
    switch (monoid) {
    case Monoid::Prod: return ScalarOp::Mul;
    case Monoid::Max: return ScalarOp::Max;
    case Monoid::Min: return ScalarOp::Min;
    case Monoid::And: return ScalarOp::And;
    case Monoid::Or: return ScalarOp::Or;
    case Monoid::Xor: return ScalarOp::Xor;
    default: return ScalarOp::Add;
    }
  }
  Monoid monoid;
  DType type;
};

ScalarValue valueOf(Lane v, DType type) {
  return isFloat(type) ? ScalarValue{0, v.f} : ScalarValue{v.i, 0};
}

class Dense {
public:
  Dense(State &state, const Equation &e, int64_t step) : state(state), e(e), step(step) {}

  Status run() {
    std::vector<int64_t> extents;
    for (const Axis &a : e.axes) {
      FUSEC_TRY(int64_t n, state.evaluate(a.extent, e.name));
      if (n < 0)
        return state.error(e.name, "axis " + a.name + " has a negative extent");
      extents.push_back(n);
    }
    for (TensorId id : e.outputs)
      FUSEC_CHECK(state.allocate(id, e.name));
    if (e.kind == EquationKind::Scatter)
      state.arrays[e.outputs[0]].owned = state.copy(e.base).owned;
    for (TensorId id : e.outputs)
      state.arrays[id].bytes = state.arrays[id].owned.data();

    std::vector<NodeId> roots = bodyRoots(e);
    // A sum of products accumulates by fma: then the product itself is not a root.
    if (e.kind == EquationKind::Reduction) {
      const Scalar &s = e.body[roots[0]];
      fused = e.monoid == Monoid::Sum && s.op == ScalarOp::Mul && isFloat(s.type) &&
              s.type == e.accumulateType;
      if (fused)
        roots = s.args;
    }
    uint64_t reductionAxes = 0;
    for (size_t a = static_cast<size_t>(e.numSpatial); a < e.axes.size(); ++a)
      reductionAxes |= uint64_t(1) << std::min<size_t>(a, 63);
    Machine machine(
        e.body, roots, [&](TensorId id) { return &state.arrays[id]; }, state.symbols, step,
        state.floatsInDouble, reductionAxes);
    auto box = [&](size_t from, size_t to) {
      std::vector<Lane *> registers;
      for (size_t a = from; a < to; ++a)
        registers.push_back(a < usedAxes() ? machine.axis(static_cast<int>(a)) : nullptr);
      return Odometer({extents.begin() + static_cast<ptrdiff_t>(from),
                       extents.begin() + static_cast<ptrdiff_t>(to)},
                      registers);
    };
    auto numSpatial = static_cast<size_t>(e.numSpatial);
    Odometer spatial = box(0, numSpatial), reduction = box(numSpatial, e.axes.size());
    bool fine = e.kind == EquationKind::Reduction ? reduce(machine, roots, spatial, reduction)
                                                  : pointwise(machine, spatial);
    if (!fine)
      return state.error(e.name,
                         machine.fault >= 0
                             ? "reads outside %" + state.program.tensors[machine.fault].name
                             : "writes outside %" + state.program.tensors[e.outputs[0]].name);
    for (TensorId id : e.outputs)
      state.written(id);
    return success();
  }

private:
  /// Axes up to the last that the body mentions have registers.
  size_t usedAxes() const {
    int used = 0;
    for (const Scalar &s : e.body.nodes)
      if (s.op == ScalarOp::Axis)
        used = std::max(used, s.index + 1);
    return static_cast<size_t>(used);
  }

  bool pointwise(Machine &machine, Odometer &points) {
    for (int64_t done = 0; done < points.numPoints(); done += kLanes) {
      int count = static_cast<int>(std::min<int64_t>(kLanes, points.numPoints() - done));
      points.next(count);
      if (!machine.runSpatial(count))
        return false;
      if (e.kind == EquationKind::Scatter) {
        for (int l = 0; l < count; ++l)
          if (!scatter(machine, l))
            return false;
        continue;
      }
      for (size_t k = 0; k < e.outputs.size(); ++k) {
        Array &out = state.arrays[e.outputs[k]];
        const Lane *v = machine.value(e.results[k]);
        for (int l = 0; l < count; ++l)
          store(out, done + l, valueOf(v[l], out.storage));
      }
    }
    return true;
  }

  bool scatter(Machine &machine, int l) {
    if (e.scatterPredicate != kNoNode && !machine.value(e.scatterPredicate)[l].i)
      return true;
    Array &out = state.arrays[e.outputs[0]];
    int64_t at = 0;
    for (size_t d = 0; d < e.scatterIndex.size(); ++d) {
      int64_t index = machine.value(e.scatterIndex[d])[l].i;
      if (index < 0 || index >= out.dims[d])
        return false;
      at = at * out.dims[d] + index;
    }
    ScalarValue v = valueOf(machine.value(e.results[0])[l], out.storage);
    constexpr ScalarOp ops[] = {ScalarOp::Const, ScalarOp::Add, ScalarOp::Mul, ScalarOp::Min,
                                ScalarOp::Max};
    if (e.combiner != Combiner::Assign) {
      ScalarValue operands[] = {load(out, at), v};
      v = *evaluateScalar(ops[static_cast<int>(e.combiner)], out.storage, out.storage, operands);
    }
    store(out, at, v);
    return true;
  }

  void accumulate(const Reducer &reducer, Machine &machine, const std::vector<NodeId> &roots,
                  Accumulator &acc, int l) const {
    if (fused)
      reducer.addProduct(acc, machine.value(roots[0])[l], machine.value(roots[1])[l]);
    else
      reducer.add(acc, machine.value(roots[0])[l],
                  roots.size() > 1 ? machine.value(roots[1])[l].i : 0);
  }

  void finish(const Accumulator &acc, int64_t element) {
    Array &out = state.arrays[e.outputs[0]];
    store(
        out, element,
        *evaluateScalar(ScalarOp::Cast, out.storage, state.storage(e.accumulateType), &acc.value));
    if (e.outputs.size() > 1)
      store(state.arrays[e.outputs[1]], element, {acc.index, 0});
  }

  /// Lanes run over outputs, or over the reduction where there are few outputs; either way each output's terms
  /// come in lexicographic order.
  bool reduce(Machine &machine, const std::vector<NodeId> &roots, Odometer &spatial,
              Odometer &reduction) {
    constexpr int64_t kFewOutputs = 32;
    const Reducer reducer(e.monoid, state.storage(e.accumulateType));
    const int64_t outputs = spatial.numPoints(), terms = reduction.numPoints();
    if (outputs < kFewOutputs) {
      for (int64_t o = 0; o < outputs; ++o) {
        spatial.nextToAll(kLanes);
        Accumulator acc = reducer.identity;
        reduction.restart();
        for (int64_t done = 0; done < terms; done += kLanes) {
          int count = static_cast<int>(std::min<int64_t>(kLanes, terms - done));
          if (done == 0 && !machine.runSpatial(kLanes))
            return false;
          reduction.next(count);
          if (!machine.run(count))
            return false;
          for (int l = 0; l < count; ++l)
            accumulate(reducer, machine, roots, acc, l);
        }
        finish(acc, o);
      }
      return true;
    }
    std::vector<Accumulator> acc(kLanes);
    for (int64_t done = 0; done < outputs; done += kLanes) {
      int count = static_cast<int>(std::min<int64_t>(kLanes, outputs - done));
      spatial.next(count);
      std::fill(acc.begin(), acc.end(), reducer.identity);
      if (terms > 0 && !machine.runSpatial(count))
        return false;
      reduction.restart();
      for (int64_t r = 0; r < terms; ++r) {
        reduction.nextToAll(count);
        if (!machine.run(count))
          return false;
        for (int l = 0; l < count; ++l)
          accumulate(reducer, machine, roots, acc[static_cast<size_t>(l)], l);
      }
      for (int l = 0; l < count; ++l)
        finish(acc[static_cast<size_t>(l)], done + l);
    }
    return true;
  }

  State &state;
  const Equation &e;
  int64_t step;
  bool fused = false;
};

} // namespace

State::State(const ExprProgram &program, bool floatsInDouble)
    : program(program), floatsInDouble(floatsInDouble), arrays(program.tensors.size()),
      symbols(program.symbols.size(), 0), symbolKnown(program.symbols.size()) {
  for (size_t i = 0; i < program.tensors.size(); ++i)
    if (const ConstantRef &c = program.tensors[i].constant) {
      arrays[i].storage = c->type;
      arrays[i].dims = c->dims;
      arrays[i].bytes = c->bytes;
    }
}

Diagnostic State::error(const std::string &where, const std::string &text) const {
  return {Diag::BadIr, "expr " + program.name + (where.empty() ? "" : ": " + where), text};
}

Result<int64_t> State::evaluate(const DimExpr &d, const std::string &where) const {
  std::vector<SymbolId> used;
  d.collectSymbols(used);
  for (SymbolId s : used)
    if (!symbolKnown[static_cast<size_t>(s)])
      return error(where, "the symbol " + program.symbols[static_cast<size_t>(s)].name +
                              " has no value yet");
  auto v = d.evaluate(symbols);
  if (!v)
    return error(where, "the size " + d.str(program.symbols) + " cannot be computed");
  return *v;
}

Result<std::vector<int64_t>> State::dims(const Shape &shape, const std::string &where) const {
  std::vector<int64_t> out;
  for (const DimExpr &d : shape) {
    FUSEC_TRY(int64_t n, evaluate(d, where));
    out.push_back(n);
  }
  if (checkedProduct(out) < 0)
    return error(where, "the shape " + str(shape, program.symbols) + " is too large or negative");
  return out;
}

Status State::bind(TensorId id) {
  const Tensor &t = program.tensors[static_cast<size_t>(id)];
  const std::vector<int64_t> &actual = arrays[static_cast<size_t>(id)].dims;
  for (size_t d = 0; d < actual.size() && d < t.shape.size(); ++d) {
    if (t.shape[d].op() == DimExpr::Op::Symbol) {
      auto s = static_cast<size_t>(t.shape[d].symbolId());
      if (!symbolKnown[s]) {
        symbolKnown[s] = true;
        symbols[s] = actual[d];
      }
    }
  }
  FUSEC_TRY(std::vector<int64_t> expected, dims(t.shape, "%" + t.name));
  if (expected != actual)
    return error("%" + t.name, "the value has other dims than " + str(t.shape, program.symbols));
  return success();
}

Status State::allocate(TensorId id, const std::string &where) {
  const Tensor &t = program.tensors[static_cast<size_t>(id)];
  FUSEC_TRY(std::vector<int64_t> sizes, dims(t.shape, where));
  arrays[static_cast<size_t>(id)].allocate(storage(t.type), std::move(sizes));
  return success();
}

Array State::copy(TensorId id) const {
  const Array &from = arrays[static_cast<size_t>(id)];
  Array to;
  to.allocate(storage(program.tensors[static_cast<size_t>(id)].type), from.dims);
  if (to.storage == from.storage)
    std::copy(from.bytes, from.bytes + to.owned.size(), to.owned.begin());
  else // a constant, kept as it is in its file
    for (int64_t i = 0; i < to.numElements(); ++i)
      store(to, i, load(from, i));
  return to;
}

void State::take(TensorId id, Array value) {
  Array &to = arrays[static_cast<size_t>(id)];
  to = std::move(value);
  to.bytes = to.owned.data();
}

Odometer::Odometer(std::vector<int64_t> extents, std::vector<Lane *> registers)
    : extents(std::move(extents)), at(this->extents.size()), registers(std::move(registers)) {
  for (int64_t n : this->extents)
    points *= n;
}

void Odometer::advance() {
  for (size_t k = extents.size(); k-- > 0;) {
    if (++at[k] < extents[k])
      return;
    at[k] = 0;
  }
}

void Odometer::next(int count) {
  for (int l = 0; l < count; ++l) {
    for (size_t k = 0; k < registers.size(); ++k)
      if (registers[k])
        registers[k][l].i = at[k];
    advance();
  }
}

void Odometer::nextToAll(int count) {
  for (size_t k = 0; k < registers.size(); ++k)
    if (registers[k])
      std::fill(registers[k], registers[k] + count, Lane{.i = at[k]});
  advance();
}

void Odometer::restart() { std::fill(at.begin(), at.end(), 0); }

Status runDense(State &state, const Equation &e, int64_t step) {
  return Dense(state, e, step).run();
}

} // namespace fusec::machine

#include "Reference/ExprEquations.h"

#include <algorithm>
#include <cmath>

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
      ScalarValue operands[] = {isFloat(type) ? ScalarValue{0, v.f} : ScalarValue{v.i, 0},
                                acc.value};
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

Lane laneOf(const ScalarValue &v, DType type) {
  return isFloat(type) ? Lane{.f = v.f} : Lane{.i = v.i};
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
    bool fine = !e.states.empty()                   ? cascade(machine, spatial, reduction)
                : e.kind == EquationKind::Reduction ? reduce(machine, roots, spatial, reduction)
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
    if (e.kind == EquationKind::Map)
      for (TensorId id : e.outputs)
        if (points.numPoints() != state.arrays[id].numElements()) // a cache with room
          return false;
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

  void finish(const Accumulator &acc, int64_t element, size_t output = 0) {
    Array &out = state.arrays[e.outputs[output]];
    store(
        out, element,
        *evaluateScalar(ScalarOp::Cast, out.storage, state.storage(e.accumulateType), &acc.value));
    if (isArgMonoid(e.monoid))
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

  /// Point by point: each state takes in the point after it has been corrected for the states before it.
  bool cascade(Machine &machine, Odometer &spatial, Odometer &reduction) {
    const DType type = state.storage(e.accumulateType);
    std::vector<Reducer> reducers;
    for (const CascadeState &s : e.states)
      reducers.emplace_back(s.monoid, type);
    const size_t hidden = e.states.size() - e.outputs.size();
    using Values = std::vector<Accumulator>;
    std::vector<Values> now(e.states.size(), Values(kLanes)), before = now;
    auto give = [&](ScalarOp op, const std::vector<Values> &states, int count) {
      for (NodeId id : e.body.reachable(bodyRoots(e))) {
        const Scalar &s = e.body[id];
        for (int l = 0; s.op == op && l < count; ++l)
          machine.leaf(id)[l] = laneOf(states[static_cast<size_t>(s.index)][l].value, type);
      }
    };
    for (int64_t done = 0; done < spatial.numPoints(); done += kLanes) {
      int count = static_cast<int>(std::min<int64_t>(kLanes, spatial.numPoints() - done));
      spatial.next(count);
      for (size_t s = 0; s < e.states.size(); ++s)
        std::fill(now[s].begin(), now[s].end(), reducers[s].identity);
      if (reduction.numPoints() > 0 && !machine.runSpatial(count))
        return false;
      reduction.restart();
      for (int64_t r = 0; r < reduction.numPoints(); ++r) {
        reduction.nextToAll(count);
        before = now;
        give(ScalarOp::Part, before, count);
        for (size_t s = 0; s < e.states.size(); ++s) {
          give(ScalarOp::State, now, count);
          if (!machine.run(count))
            return false;
          for (int l = 0; l < count; ++l) {
            if (e.states[s].correction != kNoNode)
              now[s][l].value = valueOf(machine.value(e.states[s].correction)[l], type);
            reducers[s].add(now[s][l], machine.value(e.results[s])[l], 0);
          }
        }
      }
      for (size_t o = 0; o < e.outputs.size(); ++o)
        for (int l = 0; l < count; ++l)
          finish(now[hidden + o][l], done + l, o);
    }
    return true;
  }

  State &state;
  const Equation &e;
  int64_t step;
  bool fused = false;
};

} // namespace

Status runDense(State &state, const Equation &e, int64_t step) {
  return Dense(state, e, step).run();
}

} // namespace fusec::machine

#include "Reference/ExprInterpreter.h"

#include "Reference/ExprEquations.h"

#include <algorithm>

namespace fusec {
namespace machine {

TensorValue toTensorValue(const Array &a, DType declared) {
  TensorValue out(declared, a.dims);
  for (int64_t i = 0; i < a.numElements(); ++i) {
    ScalarValue v = load(a, i);
    if (isFloat(declared))
      out.floats[static_cast<size_t>(i)] = v.f;
    else
      out.ints[static_cast<size_t>(i)] = v.i;
  }
  return out;
}

Array fromTensorValue(const TensorValue &t, DType storage) {
  Array a;
  a.allocate(storage, t.dims);
  for (int64_t i = 0; i < t.numElements(); ++i)
    store(a, i,
          t.isFloating() ? ScalarValue{0, roundToType(storage, t.floats[static_cast<size_t>(i)])}
                         : ScalarValue{t.ints[static_cast<size_t>(i)], 0});
  return a;
}

} // namespace machine

namespace {

using machine::Array;

class Runner {
public:
  Runner(const ExprProgram &program, const ExprInterpreterOptions &options)
      : options(options), state(program, options.floatsInDouble) {
    state.written = [this](TensorId id) {
      if (this->options.observer)
        this->options.observer(
            id, machine::toTensorValue(state.arrays[id], state.program.tensors[id].type));
    };
  }

  Result<std::vector<TensorValue>> run(const std::vector<TensorValue> &inputs) {
    const ExprProgram &program = state.program;
    if (inputs.size() != program.inputs.size())
      return state.error("", "the program has " + std::to_string(program.inputs.size()) +
                                 " inputs, " + std::to_string(inputs.size()) + " are given");
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorId id = program.inputs[i];
      const Tensor &t = program.tensors[id];
      if (inputs[i].type != t.type || inputs[i].dims.size() != t.shape.size())
        return state.error("%" + t.name, "the value given has another type or rank");
      state.arrays[id] = machine::fromTensorValue(inputs[i], state.storage(t.type));
      FUSEC_CHECK(state.bind(id));
    }
    state.define();
    FUSEC_CHECK(items(program.items));
    std::vector<TensorValue> out;
    for (TensorId id : program.outputs)
      out.push_back(machine::toTensorValue(state.arrays[id], program.tensors[id].type));
    return out;
  }

private:
  Status items(const std::vector<Item> &list) {
    for (const Item &item : list) {
      if (const auto *e = std::get_if<Equation>(&item.value)) {
        FUSEC_CHECK(equation(*e));
        continue;
      }
      const auto &c = std::get<Control>(item.value);
      FUSEC_CHECK(c.kind == Control::Kind::If     ? branch(c)
                  : c.kind == Control::Kind::Loop ? loop(c)
                                                  : size(c));
    }
    return success();
  }

  Status equation(const Equation &e) {
    switch (e.kind) {
    case EquationKind::Map:
    case EquationKind::Reduction:
    case EquationKind::Scatter: return machine::runDense(state, e, 0);
    case EquationKind::Opaque: return machine::runOpaque(state, e);
    case EquationKind::Scan: return scan(e);
    }
    return success();
  }

  Status scan(const Equation &e) {
    FUSEC_TRY(int64_t steps, state.evaluate(e.steps, e.name));
    auto &arrays = state.arrays;
    for (const ScanCarry &c : e.carries)
      arrays[c.previous] = state.copy(c.init);
    for (const ScanOutput &o : e.scanOutputs)
      FUSEC_CHECK(state.allocate(o.stacked, e.name));
    for (int64_t t = 0; t < steps; ++t) {
      int64_t step = e.reversed ? steps - 1 - t : t;
      for (const Equation &inner : e.scanBody)
        FUSEC_CHECK(machine::runDense(state, inner, step));
      for (const ScanOutput &o : e.scanOutputs) {
        const std::vector<uint8_t> &from = arrays[o.perStep].owned;
        const int64_t place = step - std::max<int64_t>(o.first, 0);
        if (place >= 0 && place < arrays[o.stacked].dims[0])
          std::copy(from.begin(), from.end(),
                    arrays[o.stacked].owned.begin() + place * static_cast<int64_t>(from.size()));
      }
      std::vector<Array> next; // all at once: a step's value may be another carry's previous one
      for (const ScanCarry &c : e.carries)
        next.push_back(state.copy(c.next));
      for (size_t i = 0; i < next.size(); ++i)
        state.take(e.carries[i].previous, std::move(next[i]));
    }
    for (const ScanCarry &c : e.carries)
      if (c.final >= 0) {
        state.take(c.final, state.copy(c.previous));
        state.written(c.final);
      }
    for (const ScanOutput &o : e.scanOutputs)
      state.written(o.stacked);
    return success();
  }

  Status give(TensorId to, Array value) {
    state.take(to, std::move(value));
    FUSEC_CHECK(state.bind(to));
    state.written(to);
    return success();
  }

  Status size(const Control &c) {
    const Symbol &symbol = state.program.symbols[static_cast<size_t>(c.symbol)];
    const int64_t value = machine::load(state.arrays[c.tripCount], 0).i;
    FUSEC_TRY(const int64_t bound, state.evaluate(*symbol.bound, c.name));
    if (value < 0 || value > std::min(bound, symbol.max))
      return state.error(c.name, "size '" + symbol.name + "' is " + std::to_string(value) +
                                     ", from 0 to " + std::to_string(std::min(bound, symbol.max)) +
                                     " are allowed");
    state.symbols[static_cast<size_t>(c.symbol)] = value;
    state.symbolKnown[static_cast<size_t>(c.symbol)] = true;
    return success();
  }

  Status branch(const Control &c) {
    bool taken = machine::load(state.arrays[c.condition], 0).i;
    FUSEC_CHECK(items(taken ? c.thenItems : c.elseItems));
    const auto &yields = taken ? c.thenYields : c.elseYields;
    for (size_t i = 0; i < yields.size(); ++i)
      FUSEC_CHECK(give(c.results[i], state.copy(yields[i])));
    return success();
  }

  Status loop(const Control &c) {
    auto scalar = [&](TensorId id, int64_t absent) {
      return id < 0 ? absent : machine::load(state.arrays[id], 0).i;
    };
    int64_t trips = scalar(c.tripCount, INT64_MAX);
    bool more = scalar(c.condition, 1);
    std::vector<Array> carried;
    for (TensorId id : c.carriedInit)
      carried.push_back(state.copy(id));
    for (int64_t i = 0; i < trips && more; ++i) {
      if (i >= options.maxLoopTrips)
        return state.error(c.name, "the loop runs longer than " +
                                       std::to_string(options.maxLoopTrips) + " times");
      for (size_t k = 0; k < carried.size(); ++k)
        FUSEC_CHECK(give(c.carriedIn[k], std::move(carried[k])));
      if (c.iteration >= 0) {
        Array count;
        count.allocate(DType::I64, {});
        machine::store(count, 0, {i, 0});
        FUSEC_CHECK(give(c.iteration, std::move(count)));
      }
      FUSEC_CHECK(items(c.thenItems));
      more = scalar(c.nextCondition, 1);
      carried.clear();
      for (TensorId id : c.carriedOut)
        carried.push_back(state.copy(id));
    }
    for (size_t k = 0; k < carried.size(); ++k)
      FUSEC_CHECK(give(c.results[k], std::move(carried[k])));
    return success();
  }

  ExprInterpreterOptions options;
  machine::State state;
};

} // namespace

Result<std::vector<TensorValue>> evaluate(const ExprProgram &program,
                                          const std::vector<TensorValue> &inputs,
                                          const ExprInterpreterOptions &options) {
  return Runner(program, options).run(inputs);
}

} // namespace fusec

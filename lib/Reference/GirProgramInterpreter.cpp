// Steps of a program: launches, branches and loops over tensors in plain memory.
#include "Reference/GirInterpreter.h"
#include "Reference/SymbolBinder.h"
#include "Support/Diag.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace fusec {
namespace {

constexpr uint8_t kPoison = 0xcd;

class ProgramInterpreter {
public:
  ProgramInterpreter(const GirProgram &program, const GirInterpreterOptions &options)
      : program(program), options(options), memory(program.tensors.size()) {}

  Result<std::vector<ConstantRef>> run(const std::vector<ConstantRef> &inputs) {
    FUSEC_CHECK(bindInputs(inputs));
    for (size_t t = 0; t < program.tensors.size(); ++t)
      if (unknownSize(static_cast<TensorId>(t)) < 0)
        FUSEC_CHECK(allocate(static_cast<TensorId>(t)));
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(memory[program.inputs[i]].data(), inputs[i]->bytes,
                  static_cast<size_t>(inputs[i]->sizeBytes));
    FUSEC_CHECK(steps(program.steps));
    std::vector<ConstantRef> outputs;
    for (TensorId t : program.outputs) {
      FUSEC_TRY(auto dims, dimsOf(t));
      outputs.push_back(makeConstant(program.tensors[t].type, std::move(dims), memory[t]));
    }
    return outputs;
  }

private:
  Diagnostic fail(const std::string &text, Diag id = Diag::BadOperand) const {
    return {id, "program " + program.name, text};
  }

  Status bindInputs(const std::vector<ConstantRef> &inputs) {
    if (inputs.size() != program.inputs.size())
      return fail("got " + std::to_string(inputs.size()) + " inputs, the program has " +
                  std::to_string(program.inputs.size()));
    SymbolBinder binder(program.symbols);
    for (bool solve : {false, true})
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Tensor &t = program.tensors[program.inputs[i]];
        if (inputs[i]->type != t.type || !binder.bind(t.shape, inputs[i]->dims, solve))
          return fail("input %" + t.name + " is not of type " + std::string(name(t.type)) +
                      " and shape " + str(t.shape, program.symbols));
      }
    binder.define();
    for (size_t s = 0; s < program.symbols.size(); ++s) {
      if (program.symbols[s].isDataDependent()) {
        unknown.insert(static_cast<SymbolId>(s));
        symbols.push_back(0);
        continue;
      }
      if (!binder.values()[s])
        return fail("the inputs give symbol '" + program.symbols[s].name + "' no value",
                    Diag::UnsupportedShape);
      symbols.push_back(*binder.values()[s]);
    }
    return success();
  }

  /// The last symbol in the tensor's shape that has no value yet; -1: there is none.
  SymbolId unknownSize(TensorId t) const {
    std::vector<SymbolId> used;
    for (const DimExpr &d : program.tensors[t].shape)
      d.collectSymbols(used);
    SymbolId last = -1;
    for (SymbolId s : used)
      if (unknown.count(s))
        last = s;
    return last;
  }

  Result<std::vector<int64_t>> dimsOf(TensorId t) const {
    if (const SymbolId s = unknownSize(t); s >= 0)
      return fail("size '" + program.symbols[s].name + "' of %" + program.tensors[t].name +
                  " is not known");
    std::vector<int64_t> dims;
    for (const DimExpr &d : program.tensors[t].shape) {
      auto v = d.evaluate(symbols);
      if (!v || *v < 0)
        return fail("a dimension of %" + program.tensors[t].name + " has no value");
      dims.push_back(*v);
    }
    return dims;
  }

  Status allocate(TensorId t) {
    const Tensor &tensor = program.tensors[t];
    if (tensor.kind == TensorKind::Constant) {
      const ConstantRef data = dataOf(program, t);
      memory[t].assign(data->bytes, data->bytes + data->sizeBytes);
      return success();
    }
    FUSEC_TRY(auto dims, dimsOf(t));
    int64_t bytes = sizeInBytes(tensor.type);
    for (int64_t d : dims)
      if (__builtin_mul_overflow(bytes, d, &bytes) || bytes > kMaxBytes)
        return fail("%" + tensor.name + " is too large for the interpreter", Diag::LimitExceeded);
    memory[t].assign(static_cast<size_t>(bytes), kPoison);
    return success();
  }

  Status steps(const std::vector<ExecStep> &list) {
    for (const ExecStep &s : list) {
      switch (s.kind) {
      case ExecStep::Kind::Launch: FUSEC_CHECK(launch(s)); break;
      case ExecStep::Kind::If: {
        bool holds = memory[s.condition][0] != 0;
        FUSEC_CHECK(steps(holds ? s.thenSteps : s.elseSteps));
        copy(holds ? s.thenCopies : s.elseCopies);
        break;
      }
      case ExecStep::Kind::Where:
        FUSEC_CHECK(steps(allHold(s.guards, symbols) ? s.thenSteps : s.elseSteps));
        break;
      case ExecStep::Kind::Loop: FUSEC_CHECK(loop(s)); break;
      case ExecStep::Kind::Size: FUSEC_CHECK(size(s)); break;
      }
    }
    return success();
  }

  /// The tensors that wait for the size get their memory.
  Status size(const ExecStep &s) {
    const Symbol &symbol = program.symbols[s.symbol];
    int64_t value;
    std::memcpy(&value, memory[s.tripCount].data(), sizeof value);
    const std::optional<int64_t> bound = symbol.bound->evaluate(symbols);
    if (!bound || value < 0 || value > *bound || value > symbol.max)
      return fail("size '" + symbol.name + "' is " + std::to_string(value), Diag::LimitExceeded);
    symbols[s.symbol] = value;
    unknown.erase(s.symbol);
    for (size_t t = 0; t < program.tensors.size(); ++t) {
      std::vector<SymbolId> used;
      for (const DimExpr &d : program.tensors[t].shape)
        d.collectSymbols(used);
      if (std::binary_search(used.begin(), used.end(), s.symbol) &&
          unknownSize(static_cast<TensorId>(t)) < 0)
        FUSEC_CHECK(allocate(static_cast<TensorId>(t)));
    }
    return success();
  }

  Status loop(const ExecStep &s) {
    copy(s.before);
    bool goesOn = s.condition < 0 || memory[s.condition][0] != 0;
    int64_t trips = INT64_MAX;
    if (s.tripCount >= 0)
      std::memcpy(&trips, memory[s.tripCount].data(), sizeof trips);
    for (int64_t i = 0; goesOn && i < trips; ++i) {
      if (i == options.maxLoopTrips)
        return fail("loop " + s.name + " runs more than " + std::to_string(i) + " times",
                    Diag::LimitExceeded);
      if (s.iteration >= 0)
        std::memcpy(memory[s.iteration].data(), &i, sizeof i);
      FUSEC_CHECK(steps(s.thenSteps));
      goesOn = s.nextCondition < 0 || memory[s.nextCondition][0] != 0;
      copy(s.thenCopies);
    }
    copy(s.after);
    return success();
  }

  /// All copies of a list happen at once: carried values may change places.
  void copy(const std::vector<ExecStep::Copy> &copies) {
    std::vector<std::vector<uint8_t>> values;
    for (const ExecStep::Copy &c : copies)
      values.push_back(memory[c.from]);
    for (size_t i = 0; i < copies.size(); ++i)
      memory[copies[i].to] = std::move(values[i]);
  }

  bool holds(const Guard &g) const {
    auto v = g.value.evaluate(symbols);
    return v && (g.modulus > 0 ? *v % g.modulus == 0 : *v >= 0);
  }

  Status launch(const ExecStep &s) {
    for (const LaunchVariant &v : s.variants) {
      bool taken = true;
      for (const Guard &g : v.guards)
        taken = taken && holds(g);
      if (!taken)
        continue;
      std::vector<GirArgument> arguments;
      for (TensorId t : v.arguments)
        arguments.push_back({memory[t].data(), static_cast<int64_t>(memory[t].size())});
      return fusec::run(program.kernels[v.kernel], arguments, symbols, options);
    }
    return fail("no variant of " + s.name + " fits");
  }

  static constexpr int64_t kMaxBytes = int64_t(1) << 34;
  const GirProgram &program;
  const GirInterpreterOptions &options;
  std::vector<std::vector<uint8_t>> memory; // by tensor
  std::vector<int64_t> symbols;
  std::set<SymbolId> unknown; // sizes of the data that no step has told yet
};

} // namespace

Result<std::vector<ConstantRef>> evaluate(const GirProgram &program,
                                          const std::vector<ConstantRef> &inputs,
                                          const GirInterpreterOptions &options) {
  return ProgramInterpreter(program, options).run(inputs);
}

} // namespace fusec

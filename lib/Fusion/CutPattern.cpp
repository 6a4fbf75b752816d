#include "Fusion/CutPattern.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <map>

namespace fusec {

namespace {

void collectReads(const Equation &e, std::vector<TensorId> &out) {
  auto add = [&](TensorId t) {
    if (t >= 0 && std::find(out.begin(), out.end(), t) == out.end())
      out.push_back(t);
  };
  add(e.base);
  for (const ScanCarry &carry : e.carries)
    add(carry.init);
  for (TensorId t : e.opaqueInputs)
    add(t);
  for (NodeId id : e.body.reachable(bodyRoots(e)))
    if (e.body[id].op == ScalarOp::Read || e.body[id].op == ScalarOp::ReadIf)
      add(e.body[id].index);
  std::vector<TensorId> inner, made;
  for (const Equation &step : e.scanBody) {
    collectReads(step, inner);
    made.insert(made.end(), step.outputs.begin(), step.outputs.end());
  }
  for (const ScanCarry &carry : e.carries)
    made.push_back(carry.previous);
  for (TensorId t : inner)
    if (std::find(made.begin(), made.end(), t) == made.end())
      add(t);
}

class Cutter {
public:
  explicit Cutter(const ExprProgram &from) : from(from) {}

  TensorId number(TensorId t, TensorKind kind) {
    auto [it, isNew] = numbers.emplace(t, static_cast<TensorId>(program.tensors.size()));
    if (isNew) {
      Tensor tensor = from.tensors[t];
      tensor.name = "t" + std::to_string(it->second);
      tensor.kind = kind;
      tensor.constant = tensor.defaultValue = nullptr;
      program.tensors.push_back(std::move(tensor));
    }
    return it->second;
  }

  void rename(Equation &e, const std::string &name) {
    compact(e);
    e.name = name;
    e.onnxNodes.clear();
    for (size_t a = 0; a < e.axes.size(); ++a)
      e.axes[a].name = (static_cast<int>(a) < e.numSpatial ? "i" : "r") + std::to_string(a);
    auto remap = [&](TensorId &t) {
      if (t >= 0)
        t = number(t, TensorKind::Temp);
    };
    forEachTensor(e, remap);
    for (size_t i = 0; i < e.scanBody.size(); ++i)
      rename(e.scanBody[i], name + ".b" + std::to_string(i));
    for (TensorId &t : e.outputs)
      remap(t);
  }

  const ExprProgram &from;
  ExprProgram program;
  std::map<TensorId, TensorId> numbers;
};

} // namespace

std::vector<TensorId> tensorsRead(const Equation &equation) {
  std::vector<TensorId> out;
  collectReads(equation, out);
  return out;
}

std::vector<TensorId> tensorsWritten(const Equation &equation) {
  std::vector<TensorId> out;
  if (equation.kind != EquationKind::Scan)
    return equation.outputs;
  for (const ScanCarry &carry : equation.carries)
    if (carry.final >= 0)
      out.push_back(carry.final);
  for (const ScanOutput &output : equation.scanOutputs)
    out.push_back(output.stacked);
  return out;
}

ExprProgram cutProgram(const ExprProgram &program, const std::vector<const Equation *> &equations,
                       const std::function<bool(TensorId)> &isUsedOutside,
                       std::vector<TensorId> &arguments) {
  Cutter cutter(program);
  cutter.program.symbols = program.symbols;
  for (size_t s = 0; s < cutter.program.symbols.size(); ++s) {
    cutter.program.symbols[s].name = "n" + std::to_string(s);
    cutter.program.symbols[s].bound.reset(); // a kernel takes all sizes alike
    cutter.program.symbols[s].test.reset();
    cutter.program.symbols[s].favouredKind.reset();
  }
  std::vector<TensorId> made;
  arguments.clear();
  for (const Equation *e : equations)
    for (TensorId t : tensorsWritten(*e))
      made.push_back(t);
  for (const Equation *e : equations)
    for (TensorId t : tensorsRead(*e)) {
      bool known = std::find(arguments.begin(), arguments.end(), t) != arguments.end();
      if (known || std::find(made.begin(), made.end(), t) != made.end())
        continue;
      bool constant = program.tensors[t].kind == TensorKind::Constant;
      cutter.program.inputs.push_back(
          cutter.number(t, constant ? TensorKind::Constant : TensorKind::Input));
      arguments.push_back(t);
    }
  for (TensorId t : made)
    if (isUsedOutside(t)) {
      cutter.program.outputs.push_back(cutter.number(t, TensorKind::Output));
      arguments.push_back(t);
    }
  cutter.program.items.reserve(equations.size());
  for (size_t i = 0; i < equations.size(); ++i) {
    Equation copy = *equations[i];
    cutter.rename(copy, "e" + std::to_string(i));
    cutter.program.items.push_back({std::move(copy)});
  }
  return std::move(cutter.program);
}

Pattern cutPattern(const ExprProgram &program, const Group &group,
                   const std::function<bool(TensorId)> &isUsedOutside,
                   std::vector<TensorId> &arguments) {
  Pattern pattern;
  pattern.program = cutProgram(program, group.equations, isUsedOutside, arguments);
  pattern.numArguments = static_cast<int>(arguments.size());
  pattern.phaseStarts = group.phaseStarts;
  std::string text;
  for (const Tensor &t : pattern.program.tensors)
    text += t.kind == TensorKind::Constant ? 'c' : t.kind == TensorKind::Temp ? 't' : 'a';
  for (int start : pattern.phaseStarts)
    text += "|" + std::to_string(start);
  text += print(pattern.program, nullptr);
  pattern.program.name = "k_" + hash128(text).hex().substr(0, 16);
  pattern.signature = hash128(text);
  return pattern;
}

void countUses(const std::vector<Item> &items, std::map<TensorId, int> &uses) {
  for (const Item &item : items) {
    if (const auto *equation = std::get_if<Equation>(&item.value)) {
      for (TensorId t : tensorsRead(*equation))
        ++uses[t];
      continue;
    }
    const Control &control = std::get<Control>(item.value);
    for (TensorId t : controlReads(control))
      ++uses[t];
    countUses(control.thenItems, uses);
    countUses(control.elseItems, uses);
  }
}

} // namespace fusec

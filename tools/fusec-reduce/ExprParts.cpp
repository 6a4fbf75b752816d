#include "Parts.h"

#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"
#include "Fusion/CutPattern.h"

#include <algorithm>
#include <set>

namespace fusec::reduce {

namespace {

std::vector<TensorId> madeBy(const Item &item) {
  const auto *equation = std::get_if<Equation>(&item.value);
  return equation ? tensorsWritten(*equation) : std::get<Control>(item.value).results;
}

/// What an item reads, tensors of its own inside included.
std::set<TensorId> usesOf(const Item &item) {
  std::vector<Item> alone{item};
  std::set<TensorId> uses;
  forEachEquation(alone, [&](Equation &e, const DimExpr *) {
    for (TensorId t : tensorsRead(e))
      uses.insert(t);
  });
  forEachControl(alone,
                 [&](Control &c) { forEachWholeUse(c, [&](TensorId &t) { uses.insert(t); }); });
  return uses;
}

std::optional<ExprProgram> finish(ExprProgram program) {
  if (program.outputs.empty())
    return std::nullopt;
  for (Tensor &tensor : program.tensors)
    if (tensor.kind == TensorKind::Output)
      tensor.kind = TensorKind::Temp;
  for (TensorId t : program.outputs)
    if (program.tensors[t].kind == TensorKind::Temp)
      program.tensors[t].kind = TensorKind::Output;
  program = eliminateDeadCode(std::move(program));
  std::set<TensorId> used(program.outputs.begin(), program.outputs.end());
  for (const Item &item : program.items)
    used.merge(usesOf(item));
  std::erase_if(program.inputs, [&](TensorId t) {
    if (!used.count(t))
      program.tensors[t].kind = TensorKind::Temp;
    return !used.count(t);
  });
  program = eliminateDeadCode(std::move(program));
  if (!verify(program))
    return std::nullopt;
  return program;
}

} // namespace

std::optional<ExprProgram> partOf(const ExprProgram &program, const Choice &items) {
  std::set<TensorId> madeHere, usedHere, usedElsewhere;
  ExprProgram part = program;
  part.items.clear();
  for (size_t i = 0; i < items.size(); ++i) {
    (items[i] ? usedHere : usedElsewhere).merge(usesOf(program.items[i]));
    if (!items[i])
      continue;
    part.items.push_back(program.items[i]);
    for (TensorId t : madeBy(program.items[i]))
      madeHere.insert(t);
  }
  std::erase_if(part.outputs, [&](TensorId t) { return !madeHere.count(t); });
  for (const Item &item : program.items)
    for (TensorId t : madeBy(item)) {
      if (!madeHere.count(t) && usedHere.count(t)) {
        part.tensors[t].kind = TensorKind::Input;
        part.inputs.push_back(t);
      }
      bool isOutput = std::count(part.outputs.begin(), part.outputs.end(), t) != 0;
      if (madeHere.count(t) && usedElsewhere.count(t) && !isOutput)
        part.outputs.push_back(t);
    }
  return finish(std::move(part));
}

std::optional<ExprProgram> withOutputs(const ExprProgram &program, const Choice &outputs) {
  ExprProgram part = program;
  part.outputs.clear();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i])
      part.outputs.push_back(program.outputs[i]);
  return finish(std::move(part));
}

} // namespace fusec::reduce

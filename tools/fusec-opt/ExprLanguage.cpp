#include "Language.h"
#include "Support/Diag.h"

#include "Driver/State.h"
#include "Expr/Alternatives.h"
#include "Reference/ExprInterpreter.h"

#include <algorithm>
#include <cstdlib>

namespace fusec::opt {

namespace {

/// "defer-division", or with a parameter "two-phase:64". Alternatives are for patterns, which hold equations only.
Status runAlternative(ExprProgram &program, const std::string &name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string parameter = name.substr(std::min(name.size(), colon + 1));
  for (const Alternative &a : alternatives()) {
    if (a.name != std::string_view(name).substr(0, colon))
      continue;
    const bool isPattern =
        std::all_of(program.items.begin(), program.items.end(),
                    [](const Item &i) { return std::holds_alternative<Equation>(i.value); });
    std::optional<ExprProgram> next;
    if (isPattern)
      next = a.apply(program, std::atoll(parameter.c_str()));
    if (!next)
      return Diagnostic{Diag::BadOption, "--passes",
                        "alternative '" + name + "' does not apply to the program"};
    program = std::move(*next);
    return success();
  }
  return Diagnostic{Diag::BadOption, "--passes", "expr has no pass '" + name + "'"};
}

} // namespace

Status runPass(ExprProgram &program, const std::string &name) {
  const auto list = equationPasses();
  return findPass(list, name) ? runNamed(program, list, name, "expr")
                              : runAlternative(program, name);
}

std::vector<std::string> inputNames(const ExprProgram &program) {
  std::vector<std::string> names;
  for (TensorId id : program.inputs)
    names.push_back(program.tensors[static_cast<size_t>(id)].name);
  return names;
}

Result<std::vector<NamedTensor>> interpret(const ExprProgram &program,
                                           const std::vector<NamedTensor> &inputs) {
  std::vector<TensorValue> values;
  for (TensorId id : program.inputs) {
    const Tensor &t = program.tensors[static_cast<size_t>(id)];
    FUSEC_TRY(TensorValue v, findInput(inputs, t.name, t.defaultValue));
    values.push_back(std::move(v));
  }
  FUSEC_TRY(std::vector<TensorValue> results, evaluate(program, values));
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(
        {program.tensors[static_cast<size_t>(program.outputs[i])].name, std::move(results[i])});
  return outputs;
}

namespace {

Result<std::unique_ptr<Program>> parse(const std::string &text, const std::string &path,
                                       const ConstantStore &store) {
  FUSEC_TRY(ExprProgram program, parseExpr(text, path, store));
  return std::unique_ptr<Program>(std::make_unique<ProgramOf<ExprProgram>>(std::move(program)));
}

std::vector<PassHelp> passes() {
  std::vector<PassHelp> list = helpOf(equationPasses());
  for (const Alternative &a : alternatives())
    list.push_back({std::string(a.name) + (a.choices ? ":NUMBER" : ""),
                    "alternative: " + std::string(a.help)});
  return list;
}

} // namespace

const Language exprLanguage = {"expr", "expr", parse, passes};

} // namespace fusec::opt

#include "Language.h"

#include "Expr/Passes.h"
#include "Reference/ExprFold.h"
#include "Reference/ExprInterpreter.h"

namespace fusec::opt {

namespace {

/// The stage's own passes, and the one that needs its interpreter.
std::vector<ExprPass> allPasses() {
  std::vector<ExprPass> list = {
      {"fold-constants", "compute what depends on constants alone", foldConstants}};
  list.insert(list.end(), exprPasses().begin(), exprPasses().end());
  return list;
}

} // namespace

Status runPass(ExprProgram &program, const std::string &name) {
  for (const ExprPass &pass : allPasses())
    if (pass.name == name) {
      program = pass.run(std::move(program));
      return success();
    }
  return Diagnostic{Diag::BadOption, "--passes", "expr has no pass '" + name + "'"};
}

Result<std::vector<NamedTensor>> interpret(const ExprProgram &program,
                                           const std::vector<NamedTensor> &inputs) {
  std::vector<TensorValue> values;
  for (TensorId id : program.inputs) {
    FUSEC_TRY(TensorValue v, findInput(inputs, program.tensors[static_cast<size_t>(id)].name));
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

class ExprLanguageProgram : public Program {
public:
  explicit ExprLanguageProgram(ExprProgram program) : program(std::move(program)) {}

  Status runPass(const std::string &name) override { return opt::runPass(program, name); }
  Status verify() const override { return fusec::verify(program); }
  std::string print(ConstantStore *store) const override { return fusec::print(program, store); }

  Result<std::vector<NamedTensor>> interpret(const std::vector<NamedTensor> &inputs,
                                             bool /*roundEachValue: always*/) const override {
    return opt::interpret(program, inputs);
  }

private:
  ExprProgram program;
};

Result<std::unique_ptr<Program>> parse(const std::string &text, const std::string &path,
                                       const ConstantStore &store) {
  FUSEC_TRY(ExprProgram program, parseExpr(text, path, store));
  return std::unique_ptr<Program>(std::make_unique<ExprLanguageProgram>(std::move(program)));
}

std::vector<Pass> passes() {
  std::vector<Pass> list;
  for (const ExprPass &p : allPasses())
    list.push_back({std::string(p.name), std::string(p.help)});
  return list;
}

} // namespace

const Language exprLanguage = {"expr", "expr", parse, passes};

} // namespace fusec::opt

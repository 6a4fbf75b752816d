#include "Language.h"
#include "Support/Diag.h"

#include "Gir/Passes.h"
#include "Gir/Program.h"
#include "Gir/Rewrite.h"
#include "Reference/GirInterpreter.h"

namespace fusec::opt {

namespace {

Status runOn(GirKernel &kernel, const std::string &name) {
  return runNamed(kernel, girPasses(), name, "gir");
}

} // namespace

Status runPass(GirProgram &program, const std::string &name) {
  for (GirKernel &kernel : program.kernels)
    FUSEC_CHECK(runOn(kernel, name));
  return success();
}

std::vector<std::string> inputNames(const GirProgram &program) {
  std::vector<std::string> names;
  for (TensorId id : program.inputs)
    names.push_back(program.tensors[static_cast<size_t>(id)].name);
  return names;
}

Result<std::vector<NamedTensor>> interpret(const GirProgram &program,
                                           const std::vector<NamedTensor> &inputs) {
  std::vector<ConstantRef> values;
  for (TensorId id : program.inputs) {
    const Tensor &t = program.tensors[static_cast<size_t>(id)];
    FUSEC_TRY(TensorValue v, findInput(inputs, t.name, t.defaultValue));
    values.push_back(toConstant(v));
  }
  FUSEC_TRY(std::vector<ConstantRef> results, evaluate(program, values));
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back({program.tensors[static_cast<size_t>(program.outputs[i])].name,
                       toTensorValue(*results[i])});
  return outputs;
}

namespace {

/// A kernel alone, for tests of passes.
class KernelLanguageProgram : public Program {
public:
  explicit KernelLanguageProgram(GirKernel kernel) : kernel(std::move(kernel)) {}

  Status runPass(const std::string &name) override { return runOn(kernel, name); }
  Status verify() const override { return fusec::verify(kernel); }
  std::string print(ConstantStore *) const override { return fusec::print(kernel); }
  std::vector<std::string> inputNames() const override { return {}; }

  Result<std::vector<NamedTensor>> interpret(const std::vector<NamedTensor> &,
                                             bool) const override {
    return Diagnostic{Diag::BadOption, "--interpret",
                      "a kernel alone cannot run; give a program that launches it"};
  }

private:
  GirKernel kernel;
};

Result<std::unique_ptr<Program>> parseProgram(const std::string &text, const std::string &path,
                                              const ConstantStore &store) {
  TextReader in(text, path);
  FUSEC_TRY(GirProgram program, parseGirProgram(in, store));
  return std::unique_ptr<Program>(std::make_unique<ProgramOf<GirProgram>>(std::move(program)));
}

Result<std::unique_ptr<Program>> parseKernel(const std::string &text, const std::string &path,
                                             const ConstantStore &) {
  TextReader in(text, path);
  FUSEC_TRY(GirKernel kernel, parseGirKernel(in, {}));
  if (!in.atEnd())
    return in.error("expected the end of the file after the kernel");
  return std::unique_ptr<Program>(std::make_unique<KernelLanguageProgram>(std::move(kernel)));
}

std::vector<PassHelp> passes() {
  std::vector<PassHelp> list = helpOf(girPasses());
  for (PassHelp &pass : list)
    for (const RewriteRule &rule : rewriteRules())
      if (pass.name == rule.name)
        pass.summary = "rule: " + pass.summary;
  return list;
}

} // namespace

const Language girLanguage = {"gir", "program", parseProgram, passes};
const Language kernelLanguage = {"gir", "kernel", parseKernel, passes};

} // namespace fusec::opt

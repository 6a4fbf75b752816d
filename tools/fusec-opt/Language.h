#pragma once
#include "Expr/Expr.h"
#include "Gir/Program.h"
#include "Graph/Graph.h"
#include "Onnx/Import.h"
#include "Reference/TensorValue.h"
#include "Support/Diag.h"
#include "Support/RunPasses.h"

#include <functional>
#include <memory>
#include <type_traits>

namespace fusec::opt {

/// What an interpreter run is given: tensors by input name, and where to write the outputs.
struct NamedTensor {
  std::string name;
  TensorValue value;
};

// Passes and interpreters of the programs themselves: for a text alone and for a dump.
Status runPass(Graph &graph, const std::string &name);
Status runPass(ExprProgram &program, const std::string &name);
Status runPass(GirProgram &program, const std::string &name);
Result<std::vector<NamedTensor>>
interpret(const Graph &graph, const std::vector<NamedTensor> &inputs, bool roundEachValue);
Result<std::vector<NamedTensor>> interpret(const ExprProgram &program,
                                           const std::vector<NamedTensor> &inputs);
Result<std::vector<NamedTensor>> interpret(const GirProgram &program,
                                           const std::vector<NamedTensor> &inputs);

std::vector<std::string> inputNames(const Graph &graph);
std::vector<std::string> inputNames(const ExprProgram &program);
std::vector<std::string> inputNames(const GirProgram &program);

/// A program in one of the textual IRs.
class Program {
public:
  virtual ~Program() = default;
  virtual Status runPass(const std::string &name) = 0;
  virtual Status verify() const = 0;
  virtual std::string print(ConstantStore *store) const = 0;
  virtual std::vector<std::string> inputNames() const = 0;
  /// `roundEachValue` matters to graphs alone: the other IRs state their own rounding.
  virtual Result<std::vector<NamedTensor>> interpret(const std::vector<NamedTensor> &inputs,
                                                     bool roundEachValue) const = 0;
};

/// An IR's own program.
template <typename IR> class ProgramOf : public Program {
public:
  explicit ProgramOf(IR program) : program(std::move(program)) {}

  Status runPass(const std::string &name) override { return opt::runPass(program, name); }
  Status verify() const override { return fusec::verify(program); }
  std::string print(ConstantStore *store) const override { return fusec::print(program, store); }
  std::vector<std::string> inputNames() const override { return opt::inputNames(program); }
  Result<std::vector<NamedTensor>> interpret(const std::vector<NamedTensor> &inputs,
                                             bool roundEachValue) const override {
    if constexpr (std::is_same_v<IR, Graph>)
      return opt::interpret(program, inputs, roundEachValue);
    else
      return opt::interpret(program, inputs);
  }

private:
  IR program;
};

struct PassHelp {
  std::string name, summary;
};

template <typename IR> std::vector<PassHelp> helpOf(const std::vector<Pass<IR>> &passes) {
  std::vector<PassHelp> list;
  for (const Pass<IR> &pass : passes)
    list.push_back({std::string(pass.name), std::string(pass.summary)});
  return list;
}

/// Runs the pass called `name` of an IR, with its verifier behind it.
template <typename IR>
Status runNamed(IR &program, const std::vector<Pass<IR>> &passes, const std::string &name,
                const std::string &ir) {
  const Pass<IR> *pass = findPass(passes, name);
  if (!pass)
    return Diagnostic{Diag::BadOption, "--passes", ir + " has no pass '" + name + "'"};
  FUSEC_TRY(program,
            runPasses<IR>([&]() -> Result<IR> { return std::move(program); }, {*pass}, {}));
  return success();
}

struct Language {
  std::string_view name;       // for messages
  std::string_view firstToken; // of its text
  Result<std::unique_ptr<Program>> (*parse)(const std::string &text, const std::string &path,
                                            const ConstantStore &store);
  std::vector<PassHelp> (*passes)();
};

const std::vector<Language> &languages();

extern const Language graphLanguage, exprLanguage, girLanguage, kernelLanguage;
Result<std::unique_ptr<Program>> importModel(const std::string &path, const ImportOptions &options);

/// A dump file of any stage of fusec; it is printed as one again.
Result<std::unique_ptr<Program>> parseDump(const std::string &text, const std::string &path,
                                           const ConstantStore &store);

/// The tensor called `name`, or a diagnostic.
Result<TensorValue> findInput(const std::vector<NamedTensor> &inputs, const std::string &name,
                              const ConstantRef &defaultValue);

} // namespace fusec::opt

#include "Language.h"
#include "Support/Diag.h"

#include "Driver/State.h"

namespace fusec::opt {

namespace {

class DumpProgram : public Program {
public:
  DumpProgram(Stage stage, CompileState state) : stage(stage), state(std::move(state)) {}

  Status runPass(const std::string &pass) override {
    switch (stage) {
    case Stage::Graph: return opt::runPass(state.graph, pass);
    case Stage::Expr: return opt::runPass(state.program, pass);
    case Stage::Gir:
      for (TargetState &target : state.targets)
        FUSEC_CHECK(opt::runPass(target.gir, pass));
      return success();
    default:
      return Diagnostic{Diag::BadOption, "--passes",
                        "a dump of " + std::string(name(stage)) + " has no passes"};
    }
  }
  Status verify() const override { return verifyState(stage, state); }
  std::string print(ConstantStore *store) const override { return dumpStage(stage, state, store); }
  std::vector<std::string> inputNames() const override {
    switch (stage) {
    case Stage::Graph: return opt::inputNames(state.graph);
    case Stage::Gir:
      if (!state.targets.empty())
        return opt::inputNames(state.targets[0].gir);
      return {};
    default: return opt::inputNames(state.program);
    }
  }

  Result<std::vector<NamedTensor>> interpret(const std::vector<NamedTensor> &inputs,
                                             bool roundEachValue) const override {
    switch (stage) {
    case Stage::Graph: return opt::interpret(state.graph, inputs, roundEachValue);
    case Stage::Expr: return opt::interpret(state.program, inputs);
    case Stage::Gir:
      if (state.targets.size() == 1)
        return opt::interpret(state.targets[0].gir, inputs);
      return Diagnostic{Diag::BadOption, "--interpret",
                        "the dump holds " + std::to_string(state.targets.size()) +
                            " programs; dump gir for one target alone"};
    default:
      return Diagnostic{Diag::BadOption, "--interpret",
                        "a dump of " + std::string(name(stage)) +
                            " has no interpreter; give one of graph, expr or gir"};
    }
  }

private:
  Stage stage;
  CompileState state;
};

} // namespace

Result<std::unique_ptr<Program>> parseDump(const std::string &text, const std::string &path,
                                           const ConstantStore &store) {
  Stage stage = Stage::Graph;
  CompileState state;
  FUSEC_CHECK(loadDump(text, path, {}, store, state));
  isDump(text, stage);
  return std::unique_ptr<Program>(std::make_unique<DumpProgram>(stage, std::move(state)));
}

} // namespace fusec::opt

#include "Driver/OptionRules.h"
#include "Driver/State.h"
#include "Support/Diag.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusec {

namespace {

class InputLoader {
public:
  InputLoader(const CompileOptions &options, CompileState &state)
      : options(options), state(state) {}

  /// Targets, and the state that a dump holds.
  Status load() {
    std::vector<Target> targets;
    for (const std::string &wanted : options.targets) {
      FUSEC_TRY(Target target, lookupTarget(wanted));
      bool repeated = std::any_of(targets.begin(), targets.end(),
                                  [&](const Target &t) { return t.name == target.name; });
      if (!repeated)
        targets.push_back(std::move(target));
    }
    FUSEC_CHECK(checkFiles(options));
    std::string head = readHead();
    FUSEC_CHECK(refuseLateForms(head, options.inputPath));
    Stage stage;
    if (isDump(head, stage)) {
      FUSEC_CHECK(checkStages(options, stage));
      std::ifstream in(options.inputPath, std::ios::binary);
      std::stringstream text;
      text << in.rdbuf();
      // A dump's constants lie beside it; an empty name would be a store in memory.
      const auto folder = std::filesystem::path(options.inputPath).parent_path();
      ConstantStore constants(folder.empty() ? "." : folder.string());
      state.loadedStage = stage;
      const ImportOptions &import = options.import;
      if (!import.dims.empty() || !import.shapes.empty() || !import.setInputs.empty() ||
          import.constantInitialisers || !import.markOutputs.empty())
        return Diagnostic{Diag::BadOption, options.inputPath,
                          "--dim, --shape, --set-input, --constant-initializers and --mark-output "
                          "belong to the model, not to a dump of a later stage"};
      FUSEC_CHECK(loadDump(text.str(), options.inputPath, targets, constants, state));
      FUSEC_CHECK(checkGpuOptions());
      return verifyState(stage, state);
    }
    if (targets.empty()) {
      FUSEC_TRY(Target host, lookupTarget("host"));
      targets.push_back(std::move(host));
    }
    for (Target &target : targets)
      state.targets.push_back({std::move(target), {}, {}, {}, {}, {}});
    return checkGpuOptions();
  }

private:
  Status checkGpuOptions() const {
    if (options.checked &&
        std::all_of(state.targets.begin(), state.targets.end(),
                    [](const TargetState &t) { return t.target.kind == TargetKind::Cpu; }))
      return Diagnostic{Diag::BadOption, "--checked",
                        "no target is a GPU, and the option speaks of those alone"};
    auto isNvidia = [](const TargetState &t) {
      return t.target.kind == TargetKind::Nvidia && !t.target.sim;
    };
    if (options.minDriverCuda && std::none_of(state.targets.begin(), state.targets.end(), isNvidia))
      return Diagnostic{Diag::BadOption, "--min-driver",
                        "no target is a GPU of NVIDIA, and the option speaks of those alone"};
    return success();
  }

  /// First bytes of a regular file; empty for anything else, which the importer then reports.
  std::string readHead() const {
    std::error_code error;
    if (!std::filesystem::is_regular_file(options.inputPath, error))
      return "";
    std::ifstream in(options.inputPath, std::ios::binary);
    std::string head(64, '\0');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<size_t>(in.gcount()));
    return head;
  }

  const CompileOptions &options;
  CompileState &state;
};

} // namespace

Status loadInput(const CompileOptions &options, CompileState &state) {
  FUSEC_CHECK(InputLoader(options, state).load());
  for (TargetState &target : state.targets)
    target.checked = options.checked && target.target.kind != TargetKind::Cpu && !target.target.sim;
  return success();
}

} // namespace fusec

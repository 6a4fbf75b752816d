#include "Driver/Pipeline.h"

#include "Bundle/AtomicFile.h"
#include "Driver/BundleModel.h"
#include "Driver/Decisions.h"
#include "Driver/OptionRules.h"
#include "Driver/Part.h"
#include "Driver/Searches.h"
#include "Reference/GraphInterpreter.h"
#include "Support/AtOnce.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusec {

namespace {

class Pipeline {
public:
  explicit Pipeline(const CompileOptions &options) : options(options), store(options.dumpDir) {
    if (!options.only.empty())
      part.emplace(options.only);
  }

  /// The whole compiler in the order of the data. Each stage is one call; `begin` asks whether a dump has already
  /// supplied its result, `end` dumps it and tells whether to go on.
  Result<CompileReport> run() {
    if (!options.signingKeyPath.empty()) {
      FUSEC_TRY(signingKey, bundle::readSecretKey(options.signingKeyPath));
    }
    FUSEC_CHECK(load());
    for (TargetState &target : state.targets)
      target.checked =
          options.checked && target.target.kind != TargetKind::Cpu && !target.target.sim;
    if (begin(Stage::Graph)) {
      FUSEC_CHECK(timed("import", [&] { return import(); }));
      FUSEC_CHECK(timed("graph", [&] { return optimiseGraph(); }));
    }
    FUSEC_TRY(bool goOn, end(Stage::Graph));
    if (goOn && begin(Stage::Expr))
      FUSEC_CHECK(timed("expr", [&] { return lowerToExpr(); }));
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Expr));
    }
    if (goOn && waiting.empty())
      state.graph = Graph(); // frees the constants that lowering replaced
    if (goOn && !options.decisionsPath.empty())
      FUSEC_CHECK(timed("decisions", [&] { return replay(); }));
    else if (goOn && begin(Stage::Plan))
      FUSEC_CHECK(timed("plan", [&] { return searchEachTarget(&Pipeline::plan); }));
    noteCutSearches();
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Plan));
    }
    if (goOn && begin(Stage::Schedule) && options.decisionsPath.empty())
      FUSEC_CHECK(timed("schedule", [&] { return searchEachTarget(&Pipeline::schedule); }));
    if (goOn) {
      FUSEC_CHECK(decide());
      goOn = !options.decisionsOnly;
    }
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Schedule));
    }
    if (goOn && begin(Stage::Gir))
      FUSEC_CHECK(timed("gir", [&] { return forEachTarget(&Pipeline::lowerToGir); }));
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Gir));
    }
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Llvm));
    }
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Asm));
    }
    if (goOn)
      FUSEC_CHECK(timed("object", [&] { return forEachTarget(&Pipeline::generateCode); }));
    if (goOn) {
      FUSEC_TRY(goOn, end(Stage::Object));
    }
    // A stop after the last stage leaves nothing out.
    if (goOn || (options.stopAfter == Stage::Object && !options.outputPath.empty()))
      FUSEC_CHECK(timed("bundle", [&] { return write(); }));
    else if (!options.outputPath.empty() && options.stopAfter)
      report.notes.push_back("stopped after " + std::string(name(*options.stopAfter)) + ": " +
                             options.outputPath + " is not written");
    return std::move(report);
  }

private:
  bool begin(Stage stage) const { return !loadedStage || stage > *loadedStage; }

  Result<bool> end(Stage stage) {
    bool isStop = options.stopAfter && stage >= *options.stopAfter;
    // A dump that was loaded passes the same border as a stage that ran.
    if (loadedStage && stage < *loadedStage)
      return true;
    bool toText = std::count(options.dumpToText.begin(), options.dumpToText.end(), stage) != 0;
    // Assembly takes as long as the machine code: it is made where it is asked for.
    bool toFile = !options.dumpDir.empty() && (stage != Stage::Asm || toText);
    toFile &= !options.stopAfter || stage <= *options.stopAfter;
    if (part && (toText || !waiting.empty()))
      FUSEC_CHECK(printPart(stage, toText));
    if (stage > Stage::Gir) {
      const DumpSink sink{toText ? options.print : nullptr, part ? &*part : nullptr,
                          toFile ? options.dumpDir : ""};
      for (const TargetState &target : state.targets)
        FUSEC_CHECK(dumpCode(stage, target, sink, codegenOptions(target)));
      return !isStop;
    }
    if (toText && !part)
      options.print(dumpStage(stage, state, nullptr, options.resumable));
    if (toFile) {
      const std::string text = dumpStage(stage, state, &store);
      if (!store.failures().empty())
        return store.failures();
      FUSEC_CHECK(
          writeDump(options.dumpDir, std::string(name(stage)) + ".txt", text.data(), text.size()));
    }
    return !isStop || !waiting.empty();
  }

  /// What --only leaves of this stage. Kernels are known from the plan on: what they have of earlier stages waits for
  /// that one.
  Status printPart(Stage stage, bool toText) {
    if (toText)
      waiting.push_back(stage);
    std::string text;
    bool found = false;
    if (stage > Stage::Gir) { // dumpCode prints the kernels
      waiting.clear();
      for (const TargetState &target : state.targets)
        found |= !part->kernelsOf(target).empty();
    }
    for (Stage earlier : waiting) {
      const std::optional<std::string> own = part->dump(earlier, state);
      found |= own.has_value();
      text += own.value_or("# nothing of '" + options.only + "' is in " +
                           std::string(name(earlier)) + "\n");
    }
    if (!found && stage < Stage::Plan)
      return success();
    waiting.clear();
    partFound |= found;
    if (!partFound)
      return Diagnostic{Diag::BadOption, "--only=" + options.only,
                        "no node of the model and no kernel has this name; what has been folded "
                        "away is in none (--dump-ir=plan prints kernels under their nodes)"};
    options.print(text);
    return success();
  }

  Status timed(const std::string &what, const std::function<Status()> &work) {
    if (options.progress)
      options.progress(what, "");
    auto start = std::chrono::steady_clock::now();
    Status status = work();
    report.times.push_back(
        {what, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return status;
  }

  Status forEachTarget(Status (Pipeline::*step)(TargetState &)) {
    for (TargetState &target : state.targets)
      FUSEC_CHECK((this->*step)(target));
    return success();
  }

  /// Searches of targets know nothing of each other, and run at once.
  Status searchEachTarget(Status (Pipeline::*search)(TargetState &)) {
    std::vector<Status> found(state.targets.size(), success());
    forEachAtOnce(found.size(), options.threads,
                  [&](size_t i) { found[i] = (this->*search)(state.targets[i]); });
    for (Status &status : found)
      FUSEC_CHECK(std::move(status));
    return success();
  }

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
      loadedStage = stage;
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

  Status import() {
    ImportOptions import = options.import;
    import.evaluator = referenceEvaluator();
    import.outputPath = options.outputPath;
    FUSEC_TRY(state.graph, importOnnx(options.inputPath, import, &report.warnings));
    return verify(state.graph);
  }

  Status optimiseGraph() {
    GraphPassOptions passOptions;
    passOptions.evaluator = referenceEvaluator();
    for (const GraphPass &pass : graphPasses()) {
      FUSEC_TRY(state.graph, pass.run(std::move(state.graph), passOptions));
      FUSEC_CHECK(verify(state.graph));
    }
    return success();
  }

  Status lowerToExpr() {
    FUSEC_TRY(state.program, lowerProgram(state.graph, true));
    if (options.inspect) {
      FUSEC_TRY(state.uncomposed, lowerProgram(state.graph, false));
    }
    return success();
  }

  Status plan(TargetState &target) {
    const ExprProgram own = state.program; // a body notes the ranges that it is asked for
    return planTarget(own, options.plan, target);
  }

  void noteCutSearches() {
    for (const TargetState &target : state.targets) {
      const Evaluations &spent = target.plan.evaluations;
      if (spent.cursory > 0)
        report.notes.push_back(
            "target " + target.target.name + ": the search looked less closely at " +
            std::to_string(spent.cursory) + " kernels, since those before have " +
            std::to_string(spent.thoroughEquations) +
            " equations; a larger --fusion-thorough takes longer and may find faster kernels");
    }
  }

  Status schedule(TargetState &target) { return scheduleTarget(options.plan, target); }

  /// Plan and schedules from a file instead of the search.
  Status replay() {
    std::ifstream in(options.decisionsPath, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in || in.bad())
      return Diagnostic{Diag::UnreadableFile, options.decisionsPath,
                        "the decisions cannot be read; is it a file that --emit-decisions wrote?"};
    replayed = text.str();
    return replayDecisions(replayed, options.decisionsPath, state);
  }

  /// What was decided, for the bundle and for --emit-decisions. A dump of gir brings it along.
  Status decide() {
    if (begin(Stage::Gir))
      FUSEC_CHECK(forEachTarget(&Pipeline::checkSchedules));
    if (begin(Stage::Gir))
      for (TargetState &target : state.targets)
        target.decisions = decisionsText(state.program, target);
    if (!options.decisionsPath.empty())
      for (Diagnostic &fact : editedFacts(replayed, options.decisionsPath, state))
        report.warnings.push_back(std::move(fact));
    if (options.inspect)
      FUSEC_CHECK(options.inspect(state));
    if (options.emitDecisionsPath.empty())
      return success();
    for (const TargetState &target : state.targets)
      if (target.decisions.empty())
        return Diagnostic{Diag::BadOption, "--emit-decisions=" + options.emitDecisionsPath,
                          options.inputPath + " is a dump of gir without a section 'decisions " +
                              target.target.name + "'; give the model or an earlier dump"};
    if (options.emitDecisionsPath != kPrintedPath)
      return bundle::writeWhole(options.emitDecisionsPath, decisionsFile(state));
    options.print(decisionsFile(state));
    return success();
  }

  Status checkSchedules(TargetState &target) {
    return fusec::checkSchedules(state.program, target);
  }

  Status lowerToGir(TargetState &target) {
    Status status = fusec::lowerToGir(state.program, target);
    if (!status.ok() && !options.decisionsPath.empty())
      return unfit(status.errors(), options.decisionsPath, target.target.name);
    return status;
  }

  CodegenOptions codegenOptions(const TargetState &target) const {
    return {options.threads, options.ptxasPath, target.checked, options.minDriverCuda};
  }

  Status generateCode(TargetState &target) {
    if (options.progress)
      options.progress("object", target.target.name);
    if (target.gir.kernels.empty()) // copies and branches alone need no machine code
      return success();
    FUSEC_TRY(target.images,
              compileKernels(target.gir.kernels, target.target, codegenOptions(target)));
    const bool onlyPtx =
        target.images.size() == 1 && target.images[0].format == CodeImage::Format::Ptx;
    if (onlyPtx)
      report.notes.push_back("target " + target.target.name + ": " +
                             (options.ptxOnly             ? "PTX only, as asked"
                              : options.ptxasPath.empty() ? "no ptxas found"
                                                          : "machine code of this ptxas needs "
                                                            "newer drivers") +
                             ", the bundle carries PTX that the driver compiles at load");
    report.targets.push_back({target.target.name, static_cast<int>(target.gir.kernels.size()),
                              static_cast<int>(target.gir.steps.size()), std::nullopt,
                              target.plan.evaluations, std::nullopt});
    report.targets.back().resources = resourcesOf(target);
    if (const auto &found = report.targets.back().resources)
      for (Diagnostic &warning : spillWarnings(*found, target.target.name))
        report.warnings.push_back(std::move(warning));
    if (begin(Stage::Gir)) // a dump of gir brings no schedules
      report.targets.back().predictedSec = predictedSeconds(target);
    return success();
  }

  Status write() {
    FUSEC_CHECK(writeBundle(state, options.outputPath, signingKey ? &*signingKey : nullptr,
                            options.threads));
    std::error_code error;
    report.bundleBytes =
        static_cast<int64_t>(std::filesystem::file_size(options.outputPath, error));
    return success();
  }

  const CompileOptions &options;
  ConstantStore store;
  CompileState state;
  std::optional<Part> part;
  std::vector<Stage> waiting; // to be printed when the plan tells what --only names
  bool partFound = false;
  std::optional<Stage> loadedStage;
  CompileReport report;
  std::string replayed; // the text of the decisions
  std::optional<bundle::SecretKey> signingKey;
};

} // namespace

Result<CompileReport> compile(const CompileOptions &options) { return Pipeline(options).run(); }

} // namespace fusec

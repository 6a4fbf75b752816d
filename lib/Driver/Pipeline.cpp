#include "Driver/Pipeline.h"

#include "Bundle/AtomicFile.h"
#include "Driver/BundleModel.h"
#include "Driver/Decisions.h"
#include "Driver/OptionRules.h"
#include "Driver/PassReports.h"
#include "Driver/StageBorder.h"
#include "Driver/TargetSearch.h"
#include "Graph/Passes.h"
#include "Reference/GraphInterpreter.h"
#include "Support/AtOnce.h"
#include "Support/Diag.h"
#include "Support/JsonText.h"
#include "Support/RunPasses.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusec {

namespace {

/// The whole compiler. `kSteps` is the way of the data; `run` walks it.
class Pipeline {
public:
  explicit Pipeline(const CompileOptions &options) : options(options), border(options, state) {}

  Result<CompileReport> run() {
    if (!options.signingKeyPath.empty()) {
      FUSEC_TRY(signingKey, bundle::readSecretKey(options.signingKeyPath));
    }
    FUSEC_CHECK(loadInput(options, state));
    bool goOn = true;
    for (const StageInfo &info : kStages) {
      for (const Step &step : kSteps)
        if (goOn && step.stage == info.stage &&
            (!step.isNeeded || (this->*step.isNeeded)(info.stage)))
          FUSEC_CHECK(timed(step));
      // Whoever wants the decisions alone gets no dump of their stage.
      goOn = goOn && !(options.decisionsOnly && info.stage == Stage::Schedule);
      if (goOn) {
        FUSEC_TRY(goOn, border.pass(info.stage));
      }
    }
    // A stop after the last stage leaves nothing out.
    if (goOn || (options.stopAfter == Stage::Object && !options.outputPath.empty()))
      FUSEC_CHECK(timed(kBundleStep));
    else if (!options.outputPath.empty() && options.stopAfter)
      report.notes.push_back("stopped after " + std::string(name(*options.stopAfter)) + ": " +
                             options.outputPath + " is not written");
    return std::move(report);
  }

private:
  struct Step {
    Stage stage;
    std::string_view what;                   // of the report's row
    bool (Pipeline::*isNeeded)(Stage) const; // null: in every run that comes so far
    Status (Pipeline::*run)();
  };
  static const Step kSteps[9];
  static const Step kBundleStep;

  bool isMissing(Stage stage) const { return state.needs(stage); }
  bool isSearched(Stage stage) const { return state.needs(stage) && options.decisionsPath.empty(); }
  bool isReplayed(Stage) const { return !options.decisionsPath.empty(); }

  Status timed(const Step &step) {
    if (options.progress)
      options.progress(step.what, "");
    const size_t row = report.times.size();
    report.times.push_back({std::string(step.what), 0});
    const auto start = std::chrono::steady_clock::now();
    Status status = (this->*step.run)();
    report.times[row].seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return status;
  }

  Status forEachTarget(const std::function<Status(TargetState &)> &step) {
    for (TargetState &target : state.targets)
      FUSEC_CHECK(step(target));
    return success();
  }

  /// Searches of targets know nothing of each other, and run at once.
  Status searchEachTarget(const std::function<Status(TargetState &)> &search) {
    std::vector<Status> found(state.targets.size(), success());
    forEachAtOnce(found.size(), options.threads,
                  [&](size_t i) { found[i] = search(state.targets[i]); });
    for (Status &status : found)
      FUSEC_CHECK(std::move(status));
    return success();
  }

  Result<Graph> imported(Diagnostics *warnings) const {
    ImportOptions import = options.import;
    import.evaluator = referenceEvaluator();
    import.outputPath = options.outputPath;
    return importOnnx(options.inputPath, import, warnings);
  }

  Status import() {
    FUSEC_TRY(state.graph, imported(&report.warnings));
    return success();
  }

  Status optimiseGraph() {
    bool isFirst = true;
    auto source = [&]() -> Result<Graph> {
      if (std::exchange(isFirst, false))
        return std::move(state.graph);
      return imported(nullptr);
    };
    FUSEC_TRY(state.graph, runPasses<Graph>(source, graphPasses({referenceEvaluator()}),
                                            observePasses(Stage::Graph, options, report)));
    return success();
  }

  Status lowerToExpr() {
    FUSEC_TRY(state.program,
              lowerProgram(state.graph, true, observePasses(Stage::Expr, options, report)));
    state.caches = openCaches(state.graph, state.program);
    state.sizeRules = rulesBehind(state.graph, state.program.symbols.size());
    if (options.inspect) {
      FUSEC_TRY(state.uncomposed, lowerProgram(state.graph, false));
    }
    return verify(state.program);
  }

  /// The graph's rules where more symbols stand in front of the sizes that were inferred.
  static SizeRules rulesBehind(const Graph &graph, size_t symbols) {
    SizeRules rules = graph.sizeRules;
    const auto before = static_cast<SymbolId>(graph.symbols.size());
    const auto more = static_cast<SymbolId>(symbols) - before;
    for (SizeRule &rule : rules.rules)
      for (DimExpr *side : {&rule.left, &rule.right})
        *side = side->substitute([&](SymbolId s) {
          return s < before ? std::nullopt : std::optional(DimExpr::symbol(s + more));
        });
    return rules;
  }

  /// Frees the constants that the equations have replaced.
  void dropGraph() {
    if (!border.isWaiting())
      state.graph = Graph();
  }

  /// "batch of 1 and 8", of each symbol that kernels are tuned for several sizes of.
  void noteTunedSizes() {
    std::string told;
    const std::vector<std::vector<int64_t>> tuned = tunedSizesOfEach(state.program.symbols);
    for (size_t s = 0; s < tuned.size(); ++s)
      if (tuned[s].size() > 1)
        told += (told.empty() ? "" : ", ") + oneLine(state.program.symbols[s].name) + " of " +
                sizesText(tuned[s]);
    if (!told.empty())
      report.notes.push_back("kernels are tuned for " + told +
                             ", since no option says which sizes matter; --dim "
                             "NAME=MIN..MAX:SIZE favours one");
  }

  Status plan() {
    dropGraph();
    noteTunedSizes();
    FUSEC_CHECK(searchEachTarget([this](TargetState &target) {
      const ExprProgram own = state.program; // a body notes the ranges that it is asked for
      return planTarget(own, state.caches, options.plan, target);
    }));
    noteCutSearches();
    return success();
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

  Status schedule() {
    return searchEachTarget(
        [this](TargetState &target) { return scheduleTarget(options.plan, target); });
  }

  /// Plan and schedules from a file instead of the search.
  Status replay() {
    dropGraph();
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
    if (state.needs(Stage::Gir))
      FUSEC_CHECK(forEachTarget(
          [this](const TargetState &target) { return checkSchedules(state.program, target); }));
    if (state.needs(Stage::Gir))
      for (TargetState &target : state.targets)
        target.decisions = decisionsText(state.program, target);
    if (!options.decisionsPath.empty())
      for (Diagnostic &fact : editedFacts(replayed, options.decisionsPath, state))
        report.warnings.push_back(std::move(fact));
    if (options.inspect)
      FUSEC_CHECK(options.inspect(state));
    for (TargetState &target : state.targets)
      target.oracle.reset(); // nobody asks for schedules behind here
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

  Status lowerToGir() {
    return forEachTarget([this](TargetState &target) {
      return fusec::lowerToGir(state.program, target, observePasses(Stage::Gir, options, report));
    });
  }

  Status generateCode() {
    return forEachTarget([this](TargetState &target) { return generateOne(target); });
  }
  Status generateOne(TargetState &target) {
    if (options.progress)
      options.progress("object", target.target.name);
    if (target.gir.kernels.empty()) // copies and branches alone need no machine code
      return success();
    FUSEC_TRY(target.images,
              compileKernels(target.gir.kernels, target.target, codegenOptions(options, target)));
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
    if (state.needs(Stage::Gir)) // a dump of gir brings no schedules
      report.targets.back().predictedSec = predictedSeconds(state.program, target);
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
  CompileState state;
  StageBorder border;
  CompileReport report;
  std::string replayed; // the text of the decisions
  std::optional<bundle::SecretKey> signingKey;
};

const Pipeline::Step Pipeline::kSteps[] = {
    {Stage::Graph, "import", &Pipeline::isMissing, &Pipeline::import},
    {Stage::Graph, "graph", &Pipeline::isMissing, &Pipeline::optimiseGraph},
    {Stage::Expr, "expr", &Pipeline::isMissing, &Pipeline::lowerToExpr},
    {Stage::Plan, "decisions", &Pipeline::isReplayed, &Pipeline::replay},
    {Stage::Plan, "plan", &Pipeline::isSearched, &Pipeline::plan},
    {Stage::Schedule, "schedule", &Pipeline::isSearched, &Pipeline::schedule},
    {Stage::Schedule, "decide", nullptr, &Pipeline::decide},
    {Stage::Gir, "gir", &Pipeline::isMissing, &Pipeline::lowerToGir},
    {Stage::Object, "object", nullptr, &Pipeline::generateCode},
};
const Pipeline::Step Pipeline::kBundleStep = {Stage::Object, "bundle", nullptr, &Pipeline::write};

} // namespace

Result<CompileReport> compile(const CompileOptions &options) { return Pipeline(options).run(); }

} // namespace fusec

// The public C++ entry: texts in, texts out, around the pipeline.
#include "fusec/compiler.h"
#include "Support/Diag.h"

#include "Bundle/AtomicFile.h"
#include "Bundle/Signature.h"
#include "Driver/Diff.h"
#include "Driver/PassReports.h"
#include "Support/Diagnostic.h"
#include "Support/JsonText.h"
#include "Target/Target.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <thread>
#include <unistd.h>

namespace fusec::compiler {

namespace {

Error publicError(const Diagnostic &d) {
  return {std::string(code(d.id)),
          static_cast<int>(exitCode(d.id)),
          d.where,
          d.text,
          format(d),
          formatJson(d)};
}

std::vector<Error> publicErrors(const Diagnostics &list) {
  std::vector<Error> errors;
  for (const Diagnostic &d : list)
    errors.push_back(publicError(d));
  return errors;
}

Result<Stage> stageNamed(const std::string &option, const std::string &text) {
  if (std::optional<Stage> parsed = parseStage(text))
    return *parsed;
  std::string known;
  for (const StageInfo &info : kStages)
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  return Diagnostic{Diag::BadOption, option + "=" + text, "no such stage; stages are " + known};
}

/// "12.4" as 12040; 0 for no text.
Result<int> cudaVersion(const std::string &text) {
  int major = 0, minor = 0, end = 0;
  if (text.empty())
    return 0;
  if (std::sscanf(text.c_str(), "%2d.%1d%n", &major, &minor, &end) != 2 ||
      end != static_cast<int>(text.size()) || major < 1 || minor < 0)
    return Diagnostic{Diag::BadOption, "--min-driver " + text,
                      "expected a version of CUDA, such as 12.4"};
  return major * 1000 + minor * 10;
}

/// Larger searches find nothing more and take long: two consumers with 16 patterns each have 288 combinations.
constexpr int kMostSearched = 16;
constexpr int kMostEvaluations = 1'000'000;

Result<SearchMode> searchModeNamed(const std::string &text) {
  std::string known;
  for (const SearchModeInfo &info : kSearchModes) {
    if (info.name == text)
      return info.mode;
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  return Diagnostic{Diag::BadOption, "--search-mode=" + text, "expected one of " + known};
}

/// Sizes of the search are in range, and nothing is said of it where a file of decisions stands in its place.
Status checkSearch(const Options &given) {
  const Options usual;
  auto unused = [&](const std::string &option) {
    return Diagnostic{Diag::BadOption, option,
                      "says how kernels are searched, and --decisions=" + given.decisions +
                          " takes them from a file instead; leave one of the two out"};
  };
  if (!given.decisions.empty() && given.searchMode != usual.searchMode)
    return unused("--search-mode=" + given.searchMode);
  struct Size {
    std::string option;
    int given, usual, most;
  };
  for (const Size &size :
       {Size{"--fusion-candidates", given.fusionCandidates, usual.fusionCandidates, kMostSearched},
        Size{"--fusion-group", given.fusionGroup, usual.fusionGroup, kMostSearched},
        Size{"--fusion-beam", given.fusionBeam, usual.fusionBeam, kMostSearched},
        Size{"--fusion-evaluations", given.fusionEvaluations, usual.fusionEvaluations,
             kMostEvaluations},
        Size{"--fusion-quick-evaluations", given.fusionQuickEvaluations,
             usual.fusionQuickEvaluations, kMostEvaluations},
        Size{"--fusion-thorough", given.fusionThorough, usual.fusionThorough, kMostEvaluations}}) {
    if (size.given < 1 || size.given > size.most)
      return Diagnostic{Diag::BadOption, size.option,
                        "expected a size between 1 and " + std::to_string(size.most) + ", given " +
                            std::to_string(size.given)};
    if (!given.decisions.empty() && size.given != size.usual)
      return unused(size.option + "=" + std::to_string(size.given));
  }
  return success();
}

/// The stage of "expr/compose".
Result<Stage> stageOfPass(const std::string &text) {
  std::string known;
  for (const auto &[stage, pass] : passNames()) {
    const std::string own = std::string(name(stage)) + "/" + std::string(pass);
    if (own == text)
      return stage;
    known += (known.empty() ? "" : ", ") + own;
  }
  return Diagnostic{Diag::BadOption, "--dump-after=" + text, "no such pass; passes are " + known};
}

/// What is printed on the way; returns the last stage of a pass that prints.
Result<Stage> readDumps(const Options &given, CompileOptions &options) {
  Stage lastPass = Stage::Graph;
  for (const std::string &text : given.dumpStages) {
    if (text == "all") {
      for (const StageInfo &info : kStages)
        options.dumpToText.push_back(info.stage);
      continue;
    }
    FUSEC_TRY(Stage stage, stageNamed("--dump-ir", text));
    options.dumpToText.push_back(stage);
  }
  for (const std::string &text : given.dumpAfter) {
    FUSEC_TRY(Stage stage, stageOfPass(text));
    options.dumpAfter.push_back(text);
    lastPass = std::max(lastPass, stage);
  }
  if (!given.dumpAfter.empty() && !given.only.empty())
    return Diagnostic{Diag::BadOption, "--dump-after",
                      "prints whole programs, which --only=" + given.only +
                          " does not limit; leave one of the two out"};
  options.only = given.only;
  options.resumable = given.resumable;
  for (const auto &[option, isGiven] : {std::pair("--only=" + given.only, !given.only.empty()),
                                        std::pair(std::string("--resumable"), given.resumable)})
    if (isGiven && given.dumpStages.empty())
      return Diagnostic{Diag::BadOption, option,
                        "speaks of what --dump-ir prints, which is not given"};
  if (given.resumable && !given.only.empty())
    return Diagnostic{Diag::BadOption, "--resumable",
                      "a part of a dump, as --only=" + given.only +
                          " leaves it, cannot be gone on from; leave one of the two out"};
  return lastPass;
}

Result<CompileOptions> pipelineOptions(const Options &given) {
  CompileOptions options;
  if (given.input.empty())
    return Diagnostic{Diag::BadOption, "command line",
                      "expected a model, as in: fusec model.onnx -o model.bundle"};
  options.inputPath = given.input;
  options.outputPath = given.output;
  for (const std::string &text : given.dims)
    FUSEC_CHECK(parseDimOption(text, options.import));
  for (const std::string &text : given.shapes)
    FUSEC_CHECK(parseShapeOption(text, options.import));
  options.import.setInputs = given.setInputs;
  options.import.constantInitialisers = given.constantInitialisers;
  options.import.markOutputs = given.markOutputs;
  options.targets = given.targets;
  FUSEC_TRY(const Stage lastPass, readDumps(given, options));
  options.dumpDir = given.dumpDir;
  options.decisionsPath = given.decisions;
  options.emitDecisionsPath = given.emitDecisions;
  options.pagePath = given.page;
  if (!given.stopAfter.empty()) {
    FUSEC_TRY(Stage stage, stageNamed("--stop-after", given.stopAfter));
    options.stopAfter = stage;
    if (stage < Stage::Schedule && !given.emitDecisions.empty())
      return Diagnostic{Diag::BadOption, "--stop-after=" + given.stopAfter,
                        "--emit-decisions needs what is decided later, up to schedule"};
    if (stage < Stage::Plan && !given.decisions.empty())
      return Diagnostic{Diag::BadOption, "--stop-after=" + given.stopAfter,
                        "--decisions speaks of what comes later, plan and schedule"};
  } else if (given.output.empty() && (!options.dumpToText.empty() || !options.dumpAfter.empty())) {
    // Nothing is asked for behind the last stage that is printed, or the decisions.
    options.stopAfter = lastPass;
    for (Stage stage : options.dumpToText)
      options.stopAfter = std::max(*options.stopAfter, stage);
    if (!given.emitDecisions.empty())
      options.stopAfter = std::max(*options.stopAfter, Stage::Schedule);
  } else if (given.output.empty() && !given.emitDecisions.empty()) {
    options.decisionsOnly = true;
  } else if (given.output.empty()) {
    return Diagnostic{Diag::BadOption, "-o",
                      "expected the bundle to write, as in: fusec model.onnx -o model.bundle"};
  }
  if (given.threads < 0)
    return Diagnostic{Diag::BadOption, "--threads", "expected a positive number"};
  options.threads = given.threads
                        ? given.threads
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  FUSEC_TRY(options.plan.mode, searchModeNamed(given.searchMode));
  options.plan.limits = {given.fusionCandidates,  given.fusionGroup,
                         given.fusionBeam,        given.fusionQuickEvaluations,
                         given.fusionEvaluations, given.fusionThorough};
  FUSEC_CHECK(checkSearch(given));
  options.ptxOnly = given.ptxasPath == "none";
  if (!options.ptxOnly) {
    if (!given.ptxasPath.empty() && access(given.ptxasPath.c_str(), X_OK) != 0)
      return Diagnostic{Diag::ToolMissing, "--ptxas " + given.ptxasPath, "not an executable file"};
    options.ptxasPath = given.ptxasPath;
  }
  FUSEC_TRY(options.minDriverCuda, cudaVersion(given.minDriver));
  options.checked = given.checked;
  if (!given.signingKeyPath.empty() && given.output.empty())
    return Diagnostic{Diag::BadOption, "--sign " + given.signingKeyPath,
                      "there is no bundle to sign without -o"};
  options.signingKeyPath = given.signingKeyPath;
  options.print = [&given](const std::string &text) {
    if (given.print)
      given.print(text);
  };
  if (given.progress)
    options.progress = [&given](std::string_view what, const std::string &target) {
      given.progress(what, target);
    };
  return options;
}

Result<CompileReport> run(const Options &given) {
  if (!given.page.empty())
    return Diagnostic{Diag::BadOption, "--html=" + given.page, "is made by explain alone"};
  if (!given.at.empty())
    return Diagnostic{Diag::BadOption, "--at " + given.at[0], "is told by explain alone"};
  FUSEC_TRY(CompileOptions options, pipelineOptions(given));
  return fusec::compile(options);
}

} // namespace

Outcome compile(const Options &options) {
  Outcome outcome;
  try {
    Result<CompileReport> result = run(options);
    if (!result) {
      outcome.errors = publicErrors(result.errors());
      return outcome;
    }
    for (const StageTime &time : result->times)
      outcome.report.times.push_back({time.what, time.seconds});
    for (const CompileReport::TargetReport &target : result->targets)
      outcome.report.targets.push_back(
          {target.target, target.kernels, target.launches, target.predictedSec.value_or(-1),
           target.evaluations.accurate, target.evaluations.quick, target.evaluations.cursory,
           target.evaluations.thoroughEquations});
    outcome.report.notes = result->notes;
    outcome.report.warnings = publicErrors(result->warnings);
    outcome.report.bundleBytes = result->bundleBytes;
  } catch (const std::bad_alloc &) {
    outcome.errors.push_back(publicError(
        {Diag::OutOfMemory, options.input, "the machine has not enough memory for this model"}));
  }
  return outcome;
}

Explanation explain(const Options &given) {
  Explanation out;
  auto refuse = [&](const Diagnostics &errors) { out.errors = publicErrors(errors); };
  Options options = given;
  if (!given.output.empty() || !given.stopAfter.empty()) {
    refuse({{Diag::BadOption, "explain", "makes no bundle and stops where the plan is known"}});
    return out;
  }
  options.stopAfter = given.resources ? "object" : "schedule";
  try {
    Result<CompileOptions> pipeline = pipelineOptions(options);
    if (!pipeline) {
      refuse(pipeline.errors());
      return out;
    }
    std::vector<ExplainedTarget> targets;
    pipeline->inspect = [&](const CompileState &state) -> Status {
      FUSEC_TRY(targets, fusec::explain(state, given.input, given.at));
      return success();
    };
    Result<CompileReport> report = fusec::compile(*pipeline);
    if (!report) {
      refuse(report.errors());
      return out;
    }
    for (ExplainedTarget &target : targets) {
      target.withResources = given.resources;
      for (const CompileReport::TargetReport &made : report->targets)
        if (made.target == target.target)
          target.resources = made.resources;
    }
    out.text = explanationText(targets);
    out.json = explanationJson(targets);
    out.html = explanationHtml(targets);
    out.warnings = publicErrors(report->warnings);
    out.notes = report->notes;
    if (const Status written =
            given.page.empty() ? success() : bundle::writeWhole(given.page, out.html);
        !written.ok())
      refuse(written.errors());
  } catch (const std::bad_alloc &) {
    refuse({{Diag::OutOfMemory, given.input, "the machine has not enough memory for this model"}});
  }
  return out;
}

Difference diff(const std::string &bundleA, const std::string &bundleB) {
  Difference out;
  try {
    Result<BundleDiff> result = diffBundles(bundleA, bundleB);
    if (!result) {
      out.errors = publicErrors(result.errors());
      return out;
    }
    out.equal = result->identical;
    out.text = diffText(*result);
    out.json = diffJson(*result);
  } catch (const std::bad_alloc &) {
    out.errors.push_back(publicError({Diag::OutOfMemory, bundleA + ", " + bundleB,
                                      "the machine has not enough memory for both"}));
  }
  return out;
}

std::vector<Error> makeSigningKey(const std::string &path) {
  const Status made = bundle::makeKey(path);
  return made.ok() ? std::vector<Error>() : publicErrors(made.errors());
}

Error usageError(std::string where, std::string text) {
  return publicError({Diag::BadOption, std::move(where), std::move(text)});
}

std::string jsonString(std::string_view text) { return fusec::jsonString(text); }

std::vector<StageName> stages() {
  std::vector<StageName> names;
  for (const StageInfo &info : kStages)
    names.push_back({info.name, info.help});
  return names;
}

std::vector<StageName> searchModes() {
  std::vector<StageName> list;
  for (const SearchModeInfo &info : kSearchModes)
    list.push_back({info.name, info.help});
  return list;
}

std::vector<std::string> targets() { return targetNames(); }
std::string operatorsMarkdown() { return supportedOperatorsMarkdown(); }
std::string_view version() { return FUSEC_VERSION; }

} // namespace fusec::compiler

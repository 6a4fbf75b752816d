// The compiler's command line over fusec/compiler.h. Exit codes: Error::exitCode.
#include "fusec/compiler.h"

#include "common/StandardOutput.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace fusec::compiler;

namespace {

struct CommandLine {
  Options compile;
  std::string targets, dumpIr, ptxas, makeKey, logFormat = "text";
  std::string bundleA, bundleB;
  bool explainJson = false, diffJson = false;
  bool printTimes = false, verbose = false, listTargets = false, listOps = false;
};

bool json = false;

void print(const std::vector<Error> &list) {
  for (const Error &e : list)
    std::fprintf(stderr, "%s\n", (json ? e.jsonLine : e.line).c_str());
}

void print(const std::vector<std::string> &notes) {
  for (const std::string &note : notes)
    if (json)
      std::fprintf(stderr, "{\"note\":%s}\n", jsonString(note).c_str());
    else
      std::fprintf(stderr, "note: %s\n", note.c_str());
}

int report(const std::vector<Error> &errors) {
  print(errors);
  return errors.front().exitCode;
}

std::vector<std::string> splitCommas(const std::string &text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty())
      parts.push_back(part);
  return parts;
}

/// ptxas in $CUDA_HOME, then $PATH; empty when there is none.
std::string findPtxas() {
  std::vector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  if (const char *path = std::getenv("PATH")) {
    std::stringstream in(path);
    for (std::string folder; std::getline(in, folder, ':');)
      folders.push_back(folder);
  }
  for (const std::string &folder : folders)
    if (access((folder + "/ptxas").c_str(), X_OK) == 0)
      return folder + "/ptxas";
  return "";
}

/// null, as JSON has it, where a dump brought kernels and no schedules.
std::string predictedText(const Report::Target &target) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", target.predictedSec);
  return target.predictedSec < 0 ? "null" : text;
}

void printReport(const CommandLine &line, const Report &report) {
  if (json) {
    std::string out = "{\"bundle_bytes\":" + std::to_string(report.bundleBytes) + ",\"seconds\":{";
    for (size_t i = 0; i < report.times.size(); ++i)
      out += (i ? "," : "") + jsonString(report.times[i].what) + ":" +
             std::to_string(report.times[i].seconds);
    out += "},\"targets\":[";
    for (size_t i = 0; i < report.targets.size(); ++i)
      out += (i ? ",{" : "{") + std::string("\"name\":") + jsonString(report.targets[i].name) +
             ",\"kernels\":" + std::to_string(report.targets[i].kernels) +
             ",\"steps\":" + std::to_string(report.targets[i].steps) +
             ",\"predicted_s\":" + predictedText(report.targets[i]) +
             ",\"evaluations\":" + std::to_string(report.targets[i].evaluations) +
             ",\"quick_evaluations\":" + std::to_string(report.targets[i].quickEvaluations) +
             ",\"cursory_evaluations\":" + std::to_string(report.targets[i].cursoryEvaluations) +
             ",\"thorough_equations\":" + std::to_string(report.targets[i].thoroughEquations) + "}";
    out += "],\"notes\":[";
    for (size_t i = 0; i < report.notes.size(); ++i)
      out += (i ? "," : "") + jsonString(report.notes[i]);
    std::printf("%s]}\n", out.c_str());
    return;
  }
  print(report.notes);
  if (line.printTimes)
    for (const Report::Step &step : report.times)
      std::fprintf(stderr, "%10.3f ms  %s\n", step.seconds * 1e3, step.what.c_str());
  if (line.verbose)
    for (const Report::Target &target : report.targets)
      std::fprintf(stderr,
                   "%s: %d kernels, %d steps, predicted seconds: %s, search: %lld evaluations and "
                   "%lld quick ones\n",
                   target.name.c_str(), target.kernels, target.steps, predictedText(target).c_str(),
                   static_cast<long long>(target.evaluations),
                   static_cast<long long>(target.quickEvaluations));
}

/// Errors of the command line are JSON too where that was asked for, before or after what is wrong.
bool asksForJson(int argc, char **argv) {
  bool found = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    found |= word == "--log-format=json" || (word == "--log-format" && next == "json");
  }
  return found;
}

/// The words of the command line, the last one first, as CLI11 wants them. A --dump-ir without stages behind it does
/// not take the name of the model for one.
std::vector<std::string> words(int argc, char **argv) {
  auto isStages = [](const std::string &text) {
    for (const std::string &part : splitCommas(text)) {
      const std::vector<StageName> known = stages();
      if (part != "all" && std::none_of(known.begin(), known.end(),
                                        [&](const StageName &s) { return s.name == part; }))
        return false;
    }
    return true;
  };
  std::vector<std::string> list(argv + 1, argv + argc);
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] == "--dump-ir" && (i + 1 == list.size() || !isStages(list[i + 1])))
      list[i] = "--dump-ir=all";
  std::reverse(list.begin(), list.end());
  return list;
}

std::string stageList() {
  std::string list;
  for (const StageName &stage : stages())
    list += (list.empty() ? "" : ", ") + std::string(stage.name);
  return list;
}

std::string searchModeList() {
  std::string list;
  for (const StageName &mode : searchModes())
    list += (list.empty() ? "" : "; ") + std::string(mode.name) + ": " + std::string(mode.help);
  return list;
}

/// What the model is and for which targets.
void addModelOptions(CLI::App &app, CommandLine &line) {
  Options &options = line.compile;
  app.add_option("model", options.input, "ONNX model or dump file");
  app.add_option(
      "--target", line.targets,
      "comma-separated targets (default host): host, x86-64-v3, sm_90, gfx942, sim:sm_90, ...");
  app.add_option(
         "--dim", options.dims,
         "range of a symbolic dimension: batch=1..64 or batch=1..64:8 (tune for 8) or batch=4")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--shape", options.shapes,
                 "shape of an input: x:1x3x224x224 or x:[batch,3,224,224]")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--set-input", options.setInputs,
                 "input that becomes a constant: sr=16000, x=[1,2], x=[[1,2],[3,4]] or x=@FILE.npy")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_flag("--constant-initializers", options.constantInitialisers,
               "initializers that are inputs too become constants: folded, packed, in no run "
               "replaced");
  app.add_option("--mark-output", options.markOutputs,
                 "inner tensor that becomes an output as well")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--emit-decisions", options.emitDecisions,
                 "write plan and schedules into this file (- prints them), to commit and review");
  app.add_option("--decisions", options.decisions,
                 "follow the plan and schedules of this file; an error where they do not fit");
  app.add_option("--search-mode", options.searchMode,
                 "how kernels are searched: " + searchModeList())
      ->default_str("full");
  app.add_option("--fusion-candidates", options.fusionCandidates,
                 "patterns kept for each equation by the search for kernels")
      ->default_val(options.fusionCandidates);
  app.add_option("--fusion-group", options.fusionGroup,
                 "consumers of an equation whose patterns are combined at once")
      ->default_val(options.fusionGroup);
  app.add_option("--fusion-beam", options.fusionBeam, "plans that the beam search keeps")
      ->default_val(options.fusionBeam);
  app.add_option("--fusion-evaluations", options.fusionEvaluations,
                 "kernels an equation, on average, that the search predicts accurately at most")
      ->default_val(options.fusionEvaluations);
  app.add_option("--fusion-quick-evaluations", options.fusionQuickEvaluations,
                 "kernels an equation, on average, that the search estimates at most")
      ->default_val(options.fusionQuickEvaluations);
  app.add_option("--fusion-thorough", options.fusionThorough,
                 "equations in kernels after which the search predicts without alternatives and "
                 "kept values")
      ->default_val(options.fusionThorough);
  app.add_option("--log-format", line.logFormat, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void addCompileOptions(CLI::App &app, CommandLine &line) {
  Options &options = line.compile;
  app.add_option("-o", options.output, "bundle to write");
  app.add_option("--dump-ir", line.dumpIr,
                 "print these stages (comma-separated; all of them without a value), and stop "
                 "behind the last one where -o is not given: " +
                     stageList())
      ->expected(0, 1)
      ->default_str("all");
  app.add_option("--only", options.only,
                 "print only what belongs to this node of the model, or to this kernel");
  app.add_option("--dump-after", options.dumpAfter,
                 "print the program behind these passes (comma-separated), such as expr/compose; "
                 "--print-pass-times lists them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_flag("--resumable", options.resumable,
               "print what going on from a dump needs too: the decisions in front of gir");
  app.add_option(
      "--dump-dir", options.dumpDir,
      "write one file a stage, and the constants, into this folder (asm where --dump-ir asks "
      "for it)");
  app.add_option("--stop-after", options.stopAfter,
                 "make no bundle, stop after this stage: " + stageList());
  app.add_option("--threads", options.threads, "threads that compile (default: all)")
      ->default_val(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("--ptxas", line.ptxas, "ptxas to use; 'none' for PTX only");
  app.add_option(
      "--min-driver", options.minDriver,
      "CUDA version of the oldest NVIDIA driver that must load the bundle, such as 12.4");
  app.add_flag(
      "--checked", options.checked,
      "kernels of GPUs that would wait for each other for ever end with an error, and the "
      "runtime waits for each launch, so that it can name a kernel that fails; sim targets "
      "always check");
  app.add_option("--sign", options.signingKeyPath,
                 "sign the bundle with the Ed25519 secret key in this file");
  app.add_option("--make-key", line.makeKey,
                 "make such a key in this new file, its public half in FILE.pub, and stop");
  app.add_flag("--print-pass-times", line.printTimes,
               "print the seconds of each stage and of its passes");
  app.add_flag("-v,--verbose", line.verbose, "say more");
  app.add_flag("--list-targets", line.listTargets, "list the targets");
  app.add_flag("--list-operators", line.listOps, "list the operators as a Markdown table");
  app.set_version_flag("--version", "fusec " + std::string(version()));
}

int runCompile(CommandLine &line) {
  Options &options = line.compile;
  if (line.listTargets) {
    for (const std::string &name : targets())
      std::printf("%s\n", name.c_str());
    return 0;
  }
  if (line.listOps) {
    std::printf("%s", operatorsMarkdown().c_str());
    return 0;
  }
  if (!line.makeKey.empty()) {
    const std::vector<Error> errors = makeSigningKey(line.makeKey);
    return errors.empty() ? 0 : report(errors);
  }
  options.targets = splitCommas(line.targets);
  options.dumpStages = splitCommas(line.dumpIr);
  if (options.threads < 1)
    return report({usageError("--threads", "expected a positive number")});
  // Given by name it must work; found by itself it may be missing.
  options.ptxasPath = line.ptxas.empty() ? findPtxas() : line.ptxas;
  bool terminal = isatty(STDERR_FILENO) && !json;
  if (terminal)
    options.progress = [](std::string_view what, std::string_view target) {
      std::fprintf(stderr, "\r\x1b[Kfusec: %.*s %.*s", static_cast<int>(what.size()), what.data(),
                   static_cast<int>(target.size()), target.data());
    };
  Outcome outcome = compile(options);
  if (terminal)
    std::fprintf(stderr, "\r\x1b[K");
  if (!outcome.ok())
    return report(outcome.errors);
  print(outcome.report.warnings);
  printReport(line, outcome.report);
  return 0;
}

/// Text or JSON goes to standard output; a page to its file.
int runExplain(CommandLine &line) {
  Options &options = line.compile;
  options.targets = splitCommas(line.targets);
  if (options.resources)
    options.ptxasPath = line.ptxas.empty() ? findPtxas() : line.ptxas;
  const Explanation explanation = explain(options);
  if (!explanation.ok())
    return report(explanation.errors);
  print(explanation.warnings);
  print(explanation.notes);
  const std::string &said = line.explainJson ? explanation.json : explanation.text;
  if (options.page.empty() || line.explainJson)
    std::fwrite(said.data(), 1, said.size(), stdout);
  return 0;
}

constexpr int kDifferent = 7; // Error::exitCode of a mismatch

int runDiff(const CommandLine &line) {
  const Difference difference = diff(line.bundleA, line.bundleB);
  if (!difference.ok())
    return report(difference.errors);
  const std::string &said = line.diffJson ? difference.json : difference.text;
  std::fwrite(said.data(), 1, said.size(), stdout);
  return difference.equal ? 0 : kDifferent;
}

int runTool(int argc, char **argv) {
  CommandLine line;
  line.compile.print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  CLI::App app{"fusec: compiles an ONNX model (or a dump of one of its stages) into one bundle",
               "fusec"};
  addModelOptions(app, line);
  addCompileOptions(app, line);
  CLI::App *explained = app.add_subcommand(
      "explain", "say which kernels the model becomes, what they move and take, and why");
  addModelOptions(*explained, line);
  explained->add_flag("--json", line.explainJson, "one JSON object a target, each on one line");
  explained->add_flag("--resources", line.compile.resources,
                      "make the machine code too and say what it takes on a GPU: registers, "
                      "spills, shared bytes, barriers, what the assembler remarks");
  explained->add_option("--ptxas", line.ptxas, "ptxas to use for that; 'none' for PTX only");
  explained
      ->add_option("--at", line.compile.at,
                   "predict at these sizes too, by the variants that run there: batch=2,seq=37")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  explained->add_option("--html", line.compile.page,
                        "write a page to click through into this file");
  CLI::App *diffed = app.add_subcommand(
      "diff", "compare two bundles: decisions, kernels, bytes; exit code 7 where they differ");
  diffed->add_option("first_bundle", line.bundleA, "what the other one is compared with")
      ->required();
  diffed->add_option("second_bundle", line.bundleB, "where the differences lead")->required();
  diffed->add_flag("--json", line.diffJson, "one JSON object");
  json = asksForJson(argc, argv);
  try {
    app.parse(words(argc, argv));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return report({usageError("command line",
                              std::string(error.what()) + " (fusec --help lists the options)")});
  }
  if (*explained)
    return runExplain(line);
  return *diffed ? runDiff(line) : runCompile(line);
}

} // namespace

int main(int argc, char **argv) {
  fusec::tools::StandardOutput output;
  const int code = runTool(argc, argv);
  return output.finish(code, json);
}

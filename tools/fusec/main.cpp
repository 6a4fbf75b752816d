// The compiler's command line. Exit codes: Support/Diagnostic.h.
#include "Driver/Pipeline.h"
#include "Support/Diagnostic.h"
#include "Target/Target.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace fusec;

namespace {

struct CommandLine {
  CompileOptions compile;
  std::vector<std::string> dims, shapes;
  std::string targets, dumpIr, stopAfter, ptxas, logFormat = "text";
  bool printTimes = false, verbose = false, listTargets = false, listOps = false;
};

bool json = false;

int report(const Diagnostics &errors) {
  for (const Diagnostic &d : errors)
    std::fprintf(stderr, "%s\n", (json ? formatJson(d) : format(d)).c_str());
  return static_cast<int>(exitCode(errors));
}

std::vector<std::string> splitCommas(const std::string &text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (!part.empty())
      parts.push_back(part);
  return parts;
}

/// ptxas by option, $CUDA_HOME, then $PATH; empty when there is none.
Result<std::string> findPtxas(const std::string &option) {
  if (option == "none")
    return std::string();
  if (!option.empty()) {
    if (access(option.c_str(), X_OK) == 0)
      return option;
    return Diagnostic{Diag::ToolMissing, "--ptxas " + option, "not an executable file"};
  }
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
  return std::string();
}

Status interpret(CommandLine &line) {
  CompileOptions &options = line.compile;
  for (const std::string &text : line.dims)
    FUSEC_CHECK(parseDimOption(text, options.import));
  for (const std::string &text : line.shapes)
    FUSEC_CHECK(parseShapeOption(text, options.import));
  options.targets = splitCommas(line.targets);
  auto stage = [](const std::string &option, const std::string &text) -> Result<Stage> {
    if (std::optional<Stage> parsed = parseStage(text))
      return *parsed;
    std::string known;
    for (const StageInfo &info : kStages)
      known += (known.empty() ? "" : ", ") + std::string(info.name);
    return Diagnostic{Diag::BadOption, option + "=" + text, "no such stage; stages are " + known};
  };
  if (line.dumpIr == "all") {
    for (const StageInfo &info : kStages)
      options.dumpToText.push_back(info.stage);
  } else {
    for (const std::string &text : splitCommas(line.dumpIr)) {
      FUSEC_TRY(Stage parsed, stage("--dump-ir", text));
      options.dumpToText.push_back(parsed);
    }
  }
  if (!line.stopAfter.empty()) {
    FUSEC_TRY(Stage parsed, stage("--stop-after", line.stopAfter));
    options.stopAfter = parsed;
  } else if (options.outputPath.empty()) {
    return Diagnostic{Diag::BadOption, "-o",
                      "expected the bundle to write, as in: fusec model.onnx -o model.bundle"};
  }
  if (options.threads < 1)
    return Diagnostic{Diag::BadOption, "--threads", "expected a positive number"};
  FUSEC_TRY(options.ptxasPath, findPtxas(line.ptxas));
  return success();
}

std::string jsonText(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "\"";
}

void printReport(const CommandLine &line, const CompileReport &report) {
  if (json) {
    std::string out = "{\"bundle_bytes\":" + std::to_string(report.bundleBytes) + ",\"seconds\":{";
    for (size_t i = 0; i < report.times.size(); ++i)
      out += (i ? "," : "") + jsonText(report.times[i].what) + ":" +
             std::to_string(report.times[i].seconds);
    out += "},\"targets\":[";
    for (size_t i = 0; i < report.targets.size(); ++i)
      out += (i ? ",{" : "{") + std::string("\"name\":") + jsonText(report.targets[i].target) +
             ",\"kernels\":" + std::to_string(report.targets[i].kernels) +
             ",\"steps\":" + std::to_string(report.targets[i].launches) + "}";
    out += "],\"notes\":[";
    for (size_t i = 0; i < report.notes.size(); ++i)
      out += (i ? "," : "") + jsonText(report.notes[i]);
    std::printf("%s]}\n", out.c_str());
    return;
  }
  for (const std::string &note : report.notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
  if (line.printTimes)
    for (const StageTime &time : report.times)
      std::fprintf(stderr, "%10.3f ms  %s\n", time.seconds * 1e3, time.what.c_str());
  if (line.verbose)
    for (const auto &target : report.targets)
      std::fprintf(stderr, "%s: %d kernels, %d steps\n", target.target.c_str(), target.kernels,
                   target.launches);
}

} // namespace

int main(int argc, char **argv) {
  CommandLine line;
  CLI::App app{"fusec: compiles an ONNX model (or a dump of one of its stages) into one bundle",
               "fusec"};
  app.add_option("model", line.compile.inputPath, "ONNX model or dump file");
  app.add_option("-o", line.compile.outputPath, "bundle to write");
  app.add_option(
      "--target", line.targets,
      "comma-separated targets (default host): host, x86-64-v3, sm_90, gfx942, sim:sm_90, ...");
  app.add_option(
      "--dim", line.dims,
      "range of a symbolic dimension: batch=1..64 or batch=1..64:8 (tune for 8) or batch=4");
  app.add_option("--shape", line.shapes, "shape of an input: x:1x3x224x224 or x:[batch,3,224,224]");
  app.add_option("--mark-output", line.compile.import.markOutputs,
                 "inner tensor that becomes an output as well");
  app.add_option("--dump-ir", line.dumpIr,
                 "print these stages (comma-separated; all of them without a value)")
      ->expected(0, 1)
      ->default_str("all");
  app.add_option("--dump-dir", line.compile.dumpDir,
                 "write one file a stage, and the constants, into this folder");
  app.add_option("--stop-after", line.stopAfter,
                 "stop after this stage: graph, expr, plan, schedule, gir, llvm, object");
  app.add_option("--threads", line.compile.threads, "threads that compile (default: all)")
      ->default_val(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("--ptxas", line.ptxas, "ptxas to use; 'none' for PTX only");
  app.add_option("--log-format", line.logFormat, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--print-pass-times", line.printTimes, "print the seconds of each stage");
  app.add_flag("-v,--verbose", line.verbose, "say more");
  app.add_flag("--list-targets", line.listTargets, "list the targets");
  app.add_flag("--list-operators", line.listOps, "list the operators as a Markdown table");
  app.set_version_flag("--version", "fusec 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return report({{Diag::BadOption, "command line",
                    std::string(error.what()) + " (fusec --help lists the options)"}});
  }
  json = line.logFormat == "json";
  if (line.listTargets) {
    for (const std::string &name : targetNames())
      std::printf("%s\n", name.c_str());
    return 0;
  }
  if (line.listOps) {
    std::printf("%s", supportedOperatorsMarkdown().c_str());
    return 0;
  }
  if (line.compile.inputPath.empty())
    return report({{Diag::BadOption, "command line",
                    "expected a model, as in: fusec model.onnx -o model.bundle"}});
  if (Status status = interpret(line); !status.ok())
    return report(status.errors());
  line.compile.print = [](const std::string &text) { std::printf("%s", text.c_str()); };
  bool terminal = isatty(STDERR_FILENO) && !json;
  if (terminal)
    line.compile.progress = [](std::string_view what, const std::string &target) {
      std::fprintf(stderr, "\r\x1b[Kfusec: %.*s %s", static_cast<int>(what.size()), what.data(),
                   target.c_str());
    };
  Result<CompileReport> result = compile(line.compile);
  if (terminal)
    std::fprintf(stderr, "\r\x1b[K");
  if (!result)
    return report(result.errors());
  printReport(line, *result);
  return 0;
}

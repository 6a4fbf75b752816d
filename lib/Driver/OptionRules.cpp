#include "Driver/OptionRules.h"

#include "Support/Diag.h"

#include <algorithm>
#include <filesystem>

namespace fusec {

Status checkFiles(const CompileOptions &options) {
  for (const auto &[option, path] :
       {std::pair("-o ", &options.outputPath), std::pair("--html=", &options.pagePath)})
    if (*path == kPrintedPath)
      return Diagnostic{Diag::BadOption, option + *path, "is written to a file; give its name"};
  auto same = [](const std::string &a, const std::string &b) {
    if (a.empty() || b.empty())
      return false;
    std::error_code error, other;
    if (std::filesystem::equivalent(a, b, error))
      return true;
    const std::filesystem::path p = std::filesystem::weakly_canonical(a, error),
                                q = std::filesystem::weakly_canonical(b, other);
    return !error && !other && p == q;
  };
  if (same(options.outputPath, options.inputPath))
    return Diagnostic{Diag::BadOption, "-o " + options.outputPath,
                      "is the input itself, which the bundle would replace; give another name"};
  const std::string &emit = options.emitDecisionsPath, &page = options.pagePath;
  if (same(emit, options.inputPath) || same(emit, options.outputPath))
    return Diagnostic{Diag::BadOption, "--emit-decisions=" + emit,
                      "is the model or the bundle, which it would replace; give another name"};
  if (same(page, options.inputPath) || same(page, options.decisionsPath) || same(page, emit))
    return Diagnostic{Diag::BadOption, "--html=" + page,
                      "is the model or the decisions, which it would replace; give another name"};
  return success();
}

Status checkStages(const CompileOptions &options, Stage loaded) {
  auto bad = [&](std::string_view option, Stage stage) {
    return Diagnostic{Diag::BadOption, std::string(option) + "=" + std::string(name(stage)),
                      options.inputPath + " is a dump of " + std::string(name(loaded)) +
                          ", which comes after that stage; give the model or an earlier dump"};
  };
  if (options.stopAfter && *options.stopAfter < loaded)
    return bad("--stop-after", *options.stopAfter);
  if (!options.decisionsPath.empty() && loaded >= Stage::Plan)
    return Diagnostic{Diag::BadOption, "--decisions=" + options.decisionsPath,
                      options.inputPath + " is a dump of " + std::string(name(loaded)) +
                          ", which holds a plan already; give the model or an earlier dump"};
  const std::vector<Stage> &printed = options.dumpToText;
  const bool all = std::all_of(std::begin(kStages), std::end(kStages), [&](const StageInfo &s) {
    return std::count(printed.begin(), printed.end(), s.stage) != 0;
  });
  for (Stage stage : printed)
    if (stage < loaded && !all)
      return bad("--dump-ir", stage);
  return success();
}

} // namespace fusec

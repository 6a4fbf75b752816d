#include "Driver/PassReports.h"

#include "Driver/State.h"
#include "Gir/Passes.h"
#include "Graph/Passes.h"

#include <algorithm>

namespace fusec {

PassObserver observePasses(Stage stage, const CompileOptions &options, CompileReport &report) {
  auto full = [stage](std::string_view pass) {
    return std::string(name(stage)) + "/" + std::string(pass);
  };
  PassObserver observer;
  observer.onTime = [&, full](std::string_view pass, double seconds) {
    const std::string what = full(pass);
    auto row = std::find_if(report.times.begin(), report.times.end(),
                            [&](const StageTime &time) { return time.what == what; });
    if (row == report.times.end())
      row = report.times.insert(row, {what, 0});
    row->seconds += seconds;
  };
  observer.wantsText = [&, full](std::string_view pass) {
    return std::count(options.dumpAfter.begin(), options.dumpAfter.end(), full(pass)) != 0;
  };
  observer.onText = [&, full](std::string_view pass, const std::string &text) {
    options.print("# behind " + full(pass) + "\n" + text);
  };
  observer.onBroken = [&, full](std::string_view pass, const std::string &text) {
    if (options.dumpDir.empty() ||
        !writeDump(options.dumpDir, "before-" + std::string(pass) + ".txt", text.data(),
                   text.size())
             .ok())
      options.print("# before " + full(pass) + ", which broke a rule\n" + text);
  };
  return observer;
}

std::vector<std::pair<Stage, std::string_view>> passNames() {
  std::vector<std::pair<Stage, std::string_view>> names;
  auto add = [&](Stage stage, const auto &passes) {
    for (const auto &pass : passes)
      names.push_back({stage, pass.name});
  };
  add(Stage::Graph, graphPasses({}));
  add(Stage::Expr, equationPasses());
  add(Stage::Gir, kernelPasses(true));
  return names;
}

} // namespace fusec

#include "Commands.h"
#include "Support/Diag.h"
#include "ToolError.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace fusert {

namespace {

void summary(const std::string &name, const HostTensor &t) {
  const int64_t n = t.numElements();
  std::printf("%s: %s", printable(name).c_str(), t.describe().c_str());
  double low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = t.at(i);
    low = i == 0 ? v : std::min(low, v);
    high = i == 0 ? v : std::max(high, v);
  }
  if (n > 0)
    std::printf(" min %g max %g", low, high);
  std::printf("\n");
}

} // namespace

int run(const RunOptions &options) {
  Session session(options.session, Session::Use::Run);
  std::vector<std::string> files;
  if (!options.outputDir.empty()) {
    std::vector<std::string> names;
    for (const Session::Value &output : session.outputs)
      names.push_back(output.name);
    files = fusec::tools::npyNamesFor(names);
    std::printf("%s", fusec::tools::renamedFiles(names, files).c_str());
    std::error_code error;
    std::filesystem::create_directories(options.outputDir, error);
    if (error)
      throw ToolError(fusec::Diag::CannotWrite, options.outputDir, error.message());
  }
  session.run();
  for (size_t i = 0; i < session.outputs.size(); ++i) {
    const HostTensor t = session.output(i);
    summary(session.outputs[i].name, t);
    if (!files.empty())
      writeNpy(options.outputDir + "/" + files[i], t);
  }
  if (options.session.counters)
    std::printf("%s\n", session.counters().c_str());
  return 0;
}

} // namespace fusert

#include "Commands.h"
#include "Support/Diag.h"
#include "ToolError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace fusert {

namespace {

/// Compares as numpy.allclose does, NaN equal to NaN. Prints one line; true when all is within the tolerances.
bool compare(const std::string &name, const HostTensor &got, const HostTensor &want, double rtol,
             double atol) {
  if (got.type != want.type || got.dims != want.dims) {
    std::printf("%s: MISMATCH is %s, expected %s\n", printable(name).c_str(),
                got.describe().c_str(), want.describe().c_str());
    return false;
  }
  int64_t wrong = 0, firstWrong = -1, nanOnOneSide = 0;
  double maxError = 0, squaredError = 0, squaredWant = 0;
  for (int64_t i = 0, n = got.numElements(); i < n; ++i) {
    const double g = got.at(i), w = want.at(i);
    const bool same = g == w || (std::isnan(g) && std::isnan(w));
    const double error = same ? 0 : std::abs(g - w);
    if (!same && !(error <= atol + rtol * std::abs(w))) {
      firstWrong = wrong++ == 0 ? i : firstWrong;
    }
    nanOnOneSide += std::isnan(g) != std::isnan(w);
    maxError = std::max(maxError, error);
    if (std::isfinite(w) && std::isfinite(g)) {
      squaredError += error * error;
      squaredWant += w * w;
    }
  }
  const double l2 =
      squaredWant > 0 ? std::sqrt(squaredError / squaredWant) : std::sqrt(squaredError);
  std::printf("%s: %s max abs error %.3g, relative L2 %.3g", printable(name).c_str(),
              wrong ? "MISMATCH" : "ok", maxError, l2);
  if (wrong)
    std::printf(", %lld elements differ, the first is number %lld: %.9g, expected %.9g",
                static_cast<long long>(wrong), static_cast<long long>(firstWrong),
                got.at(firstWrong), want.at(firstWrong));
  if (nanOnOneSide)
    std::printf("; %lld are NaN on one side alone and count in neither error",
                static_cast<long long>(nanOnOneSide));
  std::printf("\n");
  return wrong == 0;
}

} // namespace

int check(const CheckOptions &options) {
  for (auto [option, value] : {std::pair{"--rtol", options.rtol}, {"--atol", options.atol}})
    if (!std::isfinite(value) || value < 0)
      throw ToolError(fusec::Diag::BadOption, option,
                      "expected a finite number that is not negative");
  std::set<std::string> given;
  Session session(options.session, Session::Use::Run);
  std::vector<std::pair<size_t, std::string>> wanted; // outputs and their files
  for (const std::string &text : options.expected) {
    auto [name, path] = splitPair(text, "--expect", session.outputs);
    auto at = std::find_if(session.outputs.begin(), session.outputs.end(),
                           [&, &n = name](const Session::Value &v) { return v.name == n; });
    if (at == session.outputs.end())
      throw ToolError(fusec::Diag::BadRunInput, "--expect " + text,
                      "the model has no output '" + name + "'");
    if (!given.insert(name).second)
      throw ToolError(fusec::Diag::BadOption, "--expect " + text,
                      "the output '" + name + "' is given twice");
    wanted.emplace_back(static_cast<size_t>(at - session.outputs.begin()), path);
  }
  session.run();
  bool good = true;
  for (const auto &[index, path] : wanted) {
    const Session::Value &output = session.outputs[index];
    good &= compare(output.name, session.output(index), readTensor(path, output.type), options.rtol,
                    options.atol);
  }
  return static_cast<int>(good ? fusec::ExitCode::Done : fusec::ExitCode::Mismatch);
}

} // namespace fusert

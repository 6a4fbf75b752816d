#include "Commands.h"
#include "Support/Diag.h"
#include "ToolError.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace fusert {

int bench(const BenchOptions &options) {
  if (!std::isfinite(options.minSeconds) || options.minSeconds < 0)
    throw ToolError(fusec::Diag::BadOption, "--min-time",
                    "expected a finite number of seconds that is not negative");
  Session session(options.session, Session::Use::Run);
  for (int i = 0; i < options.warmUp; ++i)
    session.run();
  using Clock = std::chrono::steady_clock;
  std::vector<double> ms;
  constexpr size_t minRuns = 10, maxRuns = 1000000;
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point before = Clock::now();
    session.run();
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
  } while (ms.size() < maxRuns &&
           (ms.size() < minRuns ||
            std::chrono::duration<double>(Clock::now() - start).count() < options.minSeconds));
  std::sort(ms.begin(), ms.end());
  // Nearest rank: the smallest time that at least this share of the runs did not exceed.
  auto percentile = [&](size_t percent) { return ms[(ms.size() * percent + 99) / 100 - 1]; };
  const char *format =
      options.json ? "{\"median_ms\":%.6g,\"p90_ms\":%.6g,\"p99_ms\":%.6g,\"runs\":%zu,"
                     "\"min_ms\":%.6g,\"target\":%s,\"workspace_bytes\":%zu%s%s}\n"
                   : "median %.6g ms  p90 %.6g ms  p99 %.6g ms  runs %zu  min %.6g ms  target %s  "
                     "workspace %zu bytes%s%s\n";
  const std::string target = options.json ? jsonString(session.info.target) : session.info.target;
  const std::string counters = options.session.counters ? session.counters() : "";
  std::printf(format, percentile(50), percentile(90), percentile(99), ms.size(), ms.front(),
              target.c_str(), session.workspaceBytes(),
              counters.empty() ? ""
              : options.json   ? ",\"counters\":"
                               : "\n",
              counters.c_str());
  return 0;
}

} // namespace fusert

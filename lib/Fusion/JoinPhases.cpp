#include "Fusion/JoinPhases.h"

#include "Cost/SecondsText.h"

#include <algorithm>
#include <cassert>

namespace fusec {

Result<Launches> PhaseJoiner::join(VertexSets kernels) {
  Launches launches;
  for (std::vector<int> &kernel : kernels) {
    FUSEC_TRY(double alone, judge.kernelSeconds(kernel));
    FUSEC_TRY(double bytes, judge.bytes(kernel));
    launches.bytes += bytes;
    if (joins && !launches.list.empty()) {
      FUSEC_TRY(std::string reason, whyNot(launches.list.back(), kernel));
      if (reason.empty()) {
        FUSEC_TRY(double before, judge.seconds(launches.list.back()));
        launches.list.back().push_back(std::move(kernel));
        FUSEC_TRY(double after, judge.seconds(launches.list.back()));
        launches.seconds += after - before;
        continue;
      }
    }
    launches.list.push_back({std::move(kernel)});
    launches.seconds += alone;
  }
  return launches;
}

/// Why the kernel does not become the last phase of the launch, or "".
Result<std::string> PhaseJoiner::whyNot(const Phases &launch, const std::vector<int> &kernel) {
  // Part of the neighbours' work, beyond their launches, that makes up for code which no other launch shares.
  constexpr double kWorthwhile = 0.05;
  Phases together = launch;
  together.push_back(kernel);
  if (std::string reason = whyNotPhases(region, together); !reason.empty())
    return reason;
  FUSEC_TRY(double before, judge.seconds(launch));
  FUSEC_TRY(double last, judge.kernelSeconds(launch.back()));
  FUSEC_TRY(double alone, judge.kernelSeconds(kernel));
  FUSEC_TRY(double seconds, judge.seconds(together));
  if (seconds == kNever)
    return std::string("no size of their blocks suits both");
  const double saved = before + alone - seconds;
  if (saved <= 0)
    return std::string("a barrier and blocks that suit both cost more than a launch");
  if (saved >= kWorthwhile * (last + alone - 2 * judge.launchSeconds()))
    return std::string();
  for (const std::vector<int> &phase : launch) {
    FUSEC_TRY(const bool again, judge.isEqual(phase, kernel));
    if (again)
      return "a barrier in place of a launch saves no more than " + cost::secondsText(saved) +
             ", and the layers before, of the same kernels, share their code with those behind";
  }
  return std::string();
}

Result<std::string> PhaseJoiner::whyApart(const Launches &launches, const std::vector<int> &a,
                                          const std::vector<int> &b) {
  if (!joins)
    return std::string();
  for (size_t i = 0; i < launches.list.size(); ++i) {
    const Phases &launch = launches.list[i];
    if (std::find(launch.begin(), launch.end(), a) == launch.end())
      continue;
    if (i + 1 == launches.list.size() ||
        std::find(launches.list[i + 1].begin(), launches.list[i + 1].end(), b) ==
            launches.list[i + 1].end())
      return std::string("other launches run between them");
    return whyNot(launch, launches.list[i + 1].front());
  }
  assert(false && "the vertex is in a launch");
  return std::string();
}

} // namespace fusec

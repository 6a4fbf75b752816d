#include "Fusion/JoinPhases.h"

#include "Cost/SecondsText.h"

#include <algorithm>
#include <cassert>

namespace fusec {

Result<Launches> PhaseJoiner::join(VertexSets kernels) {
  Launches launches;
  double last = 0; // seconds of the last launch
  for (std::vector<int> &kernel : kernels) {
    FUSEC_TRY(double alone, accurate.kernelSeconds(kernel));
    FUSEC_TRY(double bytes, accurate.bytes(kernel));
    launches.bytes += bytes;
    if (joins && !launches.list.empty()) {
      Phases &launch = launches.list.back();
      launch.push_back(std::move(kernel));
      FUSEC_TRY(const Longer with, longer(launch, last));
      if (with.whyNot.empty()) {
        launches.seconds += with.seconds - last;
        last = with.seconds;
        continue;
      }
      kernel = std::move(launch.back());
      launch.pop_back();
    }
    launches.list.emplace_back().push_back(std::move(kernel));
    launches.seconds += alone;
    last = alone;
  }
  return launches;
}

/// Whether the last phase should join the launch of the others. `before`: seconds of that launch without it.
Result<PhaseJoiner::Longer> PhaseJoiner::longer(const Phases &phases, double before) {
  // Part of the neighbours' work, beyond their launches, that makes up for code which no other launch shares.
  constexpr double kWorthwhile = 0.05;
  if (std::string reason = whyNotPhases(region, phases); !reason.empty())
    return Longer{std::move(reason), kNever};
  const std::vector<int> &kernel = phases.back();
  FUSEC_TRY(double last, accurate.kernelSeconds(phases[phases.size() - 2]));
  FUSEC_TRY(double alone, accurate.kernelSeconds(kernel));
  FUSEC_TRY(double seconds, accurate.seconds(phases));
  if (seconds == kNever)
    return Longer{"no size of their blocks suits both", kNever};
  const double saved = before + alone - seconds;
  if (saved <= 0)
    return Longer{"a barrier and blocks that suit both cost more than a launch", seconds};
  if (saved >= kWorthwhile * (last + alone - 2 * accurate.launchSeconds()))
    return Longer{"", seconds};
  for (size_t p = 0; p + 1 < phases.size(); ++p) {
    FUSEC_TRY(const bool again, accurate.isEqual(phases[p], kernel));
    if (again)
      return Longer{"a barrier in place of a launch saves no more than " +
                        cost::secondsText(saved) +
                        ", and the layers before, of the same kernels, share their code with those "
                        "behind",
                    seconds};
  }
  return Longer{"", seconds};
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
    FUSEC_TRY(const double before, accurate.seconds(launch));
    Phases phases = launch;
    phases.push_back(launches.list[i + 1].front());
    FUSEC_TRY(Longer with, longer(phases, before));
    return std::move(with.whyNot);
  }
  assert(false && "the vertex is in a launch");
  return std::string();
}

} // namespace fusec

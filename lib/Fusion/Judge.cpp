#include "Fusion/Judge.h"

#include "Cost/Cost.h"

#include <cmath>

namespace fusec {

/// The nearest multiple of 2^-50 s. Sums of such below 8 s are exact: plans of the same kernels take the same, whatever
/// the order in which they are added up.
static double exact(double seconds) {
  constexpr int kBits = 50;
  return std::ldexp(std::round(std::ldexp(seconds, kBits)), -kBits);
}

Result<double> Judge::kernelSeconds(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  return time->seconds;
}

Result<double> Judge::bytes(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  return time->bytes;
}

Result<bool> Judge::isEqual(const std::vector<int> &a, const std::vector<int> &b) {
  FUSEC_TRY(const KernelTime *ofA, timeOf(a));
  FUSEC_TRY(const KernelTime *ofB, timeOf(b));
  return ofA == ofB;
}

Result<double> Judge::seconds(const Phases &phases) {
  if (phases.size() == 1)
    return kernelSeconds(phases[0]);
  std::map<int, std::vector<const PhaseTime *>> kernels; // by the number of units
  for (const std::vector<int> &phase : phases) {
    FUSEC_TRY(const KernelTime *time, timeOf(phase));
    for (const auto &[units, own] : time->ofUnits)
      kernels[units].push_back(&own);
  }
  double least = kNever;
  for (const auto &[units, own] : kernels)
    if (own.size() == phases.size())
      least = std::min(least, secondsOfOne(own));
  return exact(least - double(phases.size() - 1) * cost::savedByPhase(target));
}

/// Of launches, one for each, whose blocks hold what the neediest does; counters in the place of barriers.
double Judge::secondsOfOne(const std::vector<const PhaseTime *> &kernels) const {
  std::vector<cost::Counts> all;
  for (const PhaseTime *kernel : kernels)
    all.insert(all.end(), kernel->phases.begin(), kernel->phases.end());
  cost::shareKernel(all);
  double seconds = 0;
  std::vector<double> turns;
  size_t next = 0;
  for (const PhaseTime *kernel : kernels) {
    const std::span<cost::Counts> own(&all[next], kernel->phases.size());
    next += own.size();
    std::vector<double> ownTurns;
    for (cost::Counts &phase : own) {
      phase.waits = false;
      ownTurns.push_back(cost::turns(phase, target));
    }
    // What is known already is not added up anew: it costs time where there are many.
    seconds += cost::placesOfCore(own[0], target) == cost::placesOfCore(kernel->phases[0], target)
                   ? kernel->seconds + cost::savedByCounters(ownTurns, target)
                   : exact(cost::latency(own, target));
    turns.insert(turns.end(), ownTurns.begin(), ownTurns.end());
  }
  return seconds - cost::savedByCounters(turns, target);
}

uint64_t Judge::tieOf(const std::vector<Phases> &launches) {
  uint64_t sum = 0;
  for (const Phases &launch : launches)
    if (region.vertices[launch[0][0]].equation)
      sum += keys.key(groupOf(launch)).low;
  return sum;
}

Result<double> Judge::bytesApart(const std::vector<int> &vertices) {
  double bytes = 0;
  for (int v : vertices) {
    FUSEC_TRY(const KernelTime *alone, timeOf({v}));
    bytes += alone->bytes;
  }
  return bytes;
}

Result<std::optional<std::pair<double, double>>>
Judge::movesMore(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  FUSEC_TRY(const double apart, bytesApart(vertices));
  std::optional<std::pair<double, double>> both;
  if (time->bytes > apart)
    both = {time->bytes, apart};
  return both;
}

Result<const KernelTime *> Judge::timeOf(const std::vector<int> &vertices) {
  static const KernelTime nothing{0, {}, 0};
  if (!region.vertices[vertices[0]].equation)
    return &nothing;
  if (auto it = known.find(vertices); it != known.end())
    return it->second;
  const Group group = groupOf({vertices});
  const Hash128 key = keys.key(group);
  if (auto it = ofEqual.find(key); it != ofEqual.end())
    return known[vertices] = &it->second;
  if (!budget.take()) {
    static const KernelTime notAsked{kNever, {}, 0};
    ++refused;
    return &notAsked;
  }
  std::vector<TensorId> arguments;
  const Pattern pattern = cutPattern(
      context.program, group,
      [&](TensorId t) { return isUsedOutside(group.equations, context.uses, t); }, arguments);
  FUSEC_TRY(KernelTime time, oracle(pattern));
  if (vertices.size() > 1) {
    FUSEC_TRY(const double apart, bytesApart(vertices));
    if (time.bytes > apart)
      time = {kNever, {}, time.bytes};
  }
  time.seconds = time.seconds < 0 ? kNever : exact(time.seconds);
  for (auto &[units, ofUnits] : time.ofUnits)
    ofUnits.seconds = exact(ofUnits.seconds);
  return known[vertices] = &(ofEqual[key] = std::move(time));
}

} // namespace fusec

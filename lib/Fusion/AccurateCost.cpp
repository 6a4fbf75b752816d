#include "Fusion/AccurateCost.h"

#include "Cost/Cost.h"

#include <algorithm>
#include <cmath>

namespace fusec {

int64_t equationsWeighed(const Equation &equation) {
  constexpr size_t kNodesOfOne = 128; // more than equations other than wide choices have
  return static_cast<int64_t>(1 + equation.body.nodes.size() / kNodesOfOne);
}

/// `seconds` rounded to a multiple of 2^-50 s. Sums of such multiples below 8 s are exact, so that plans of the same
/// kernels cost the same in whatever order they are added up.
static double exact(double seconds) {
  constexpr int kBits = 50;
  return std::ldexp(std::round(std::ldexp(seconds, kBits)), -kBits);
}

Result<double> AccurateCost::kernelSeconds(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  return time->seconds;
}

Result<double> AccurateCost::bytes(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  return time->bytes;
}

Result<bool> AccurateCost::isEqual(const std::vector<int> &a, const std::vector<int> &b) {
  FUSEC_TRY(const KernelTime *ofA, timeOf(a));
  FUSEC_TRY(const KernelTime *ofB, timeOf(b));
  return ofA == ofB;
}

Result<double> AccurateCost::seconds(const Phases &phases) {
  if (phases.size() == 1)
    return kernelSeconds(phases[0]);
  std::map<int, std::vector<const cost::LaunchTime *>> kernels; // by the number of units
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

/// Seconds of `phases` as one kernel with grid barriers; every phase pays the occupancy of the most demanding of
/// `kernels`.
double AccurateCost::secondsAmong(const std::vector<const cost::LaunchTime *> &kernels,
                                  const std::vector<cost::Counts> &phases) const {
  std::vector<cost::Counts> all = phases;
  for (const cost::LaunchTime *kernel : kernels)
    all.push_back(kernel->phases[0]);
  cost::applyWorstOccupancy(all);
  all.resize(phases.size());
  for (cost::Counts &phase : all)
    phase.waits = false;
  return cost::latency(all, target);
}

/// Seconds of `kernels` as one launch each, all with the occupancy of the most demanding one, less what counters save
/// over grid barriers if they are one kernel.
double AccurateCost::secondsOfOne(const std::vector<const cost::LaunchTime *> &kernels) const {
  // Registers and shared memory each limit the resident blocks, so the worst kernel's number is the minimum over all. A
  // kernel whose own number is the minimum takes as long as alone.
  std::vector<int64_t> residentOf;
  for (const cost::LaunchTime *kernel : kernels)
    residentOf.push_back(cost::residentBlocks(kernel->phases[0], target));
  const int64_t resident = *std::min_element(residentOf.begin(), residentOf.end());
  double seconds = 0;
  std::vector<double> waves;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const size_t first = waves.size();
    for (const cost::Counts &phase : kernels[k]->phases)
      waves.push_back(cost::waves(phase, resident));
    seconds +=
        residentOf[k] == resident
            ? kernels[k]->seconds + cost::savedByCounters(std::span(waves).subspan(first), target)
            : exact(secondsAmong(kernels, kernels[k]->phases));
  }
  return seconds - cost::savedByCounters(waves, target);
}

uint64_t AccurateCost::tieOf(const std::vector<Phases> &launches) {
  uint64_t sum = 0;
  for (const Phases &launch : launches)
    if (region.vertices[launch[0][0]].equation)
      sum += keys.key(groupOf(launch)).low;
  return sum;
}

Result<double> AccurateCost::bytesApart(const std::vector<int> &vertices) {
  double bytes = 0;
  for (int v : vertices) {
    FUSEC_TRY(const KernelTime *alone, timeOf({v}));
    bytes += alone->bytes;
  }
  return bytes;
}

Result<std::optional<std::pair<double, double>>>
AccurateCost::movesMore(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  FUSEC_TRY(const double apart, bytesApart(vertices));
  std::optional<std::pair<double, double>> both;
  if (time->bytes > apart)
    both = {time->bytes, apart};
  return both;
}

Result<const KernelTime *> AccurateCost::timeOf(const std::vector<int> &vertices) {
  static const KernelTime nothing{0, {}, 0};
  if (!region.vertices[vertices[0]].equation)
    return &nothing;
  if (auto it = known.find(vertices); it != known.end())
    return it->second;
  const Group group = groupOf({vertices});
  const Hash128 key = keys.key(group);
  if (auto it = ofEqual.find(key); it != ofEqual.end())
    return known[vertices] = &it->second;
  if ((vertices.size() > 1 && isSpent()) || !budget.take()) {
    static const KernelTime notAsked{kNever, {}, 0};
    ++refused;
    return &notAsked;
  }
  if (vertices.size() > 1) {
    int64_t work = 0;
    for (int v : vertices)
      work += equationsWeighed(*region.vertices[v].equation);
    equations.takeWork(work);
  }
  std::vector<TensorId> arguments;
  const Pattern pattern = cutPattern(
      context.program, group,
      [&](TensorId t) { return isNeededOutside(context, region, vertices, t); }, arguments);
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

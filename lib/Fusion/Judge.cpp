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

Result<double> Judge::seconds(const Phases &phases) {
  if (phases.size() == 1)
    return kernelSeconds(phases[0]);
  std::map<int, double> sums;
  for (size_t p = 0; p < phases.size(); ++p) {
    FUSEC_TRY(const KernelTime *time, timeOf(phases[p]));
    if (p == 0)
      sums = time->ofUnits;
    for (auto sum = sums.begin(); p > 0 && sum != sums.end();) {
      auto own = time->ofUnits.find(sum->first);
      if (own != time->ofUnits.end())
        sum->second += own->second;
      sum = own != time->ofUnits.end() ? std::next(sum) : sums.erase(sum);
    }
  }
  double least = kNever;
  for (auto [units, sum] : sums)
    least = std::min(least, sum);
  return exact(least - double(phases.size() - 1) * cost::savedByPhase(target));
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
  for (auto &[units, seconds] : time.ofUnits)
    seconds = exact(seconds);
  return known[vertices] = &(ofEqual[key] = std::move(time));
}

} // namespace fusec

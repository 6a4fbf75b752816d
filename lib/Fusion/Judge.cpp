#include "Fusion/Judge.h"

#include "Cost/Cost.h"

namespace fusec {

Result<double> Judge::kernelSeconds(const std::vector<int> &vertices) {
  FUSEC_TRY(const KernelTime *time, timeOf(vertices));
  return time->seconds;
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
  return least - double(phases.size() - 1) * cost::savedByPhase(target);
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
  // Plans that take equally long are told apart by what their kernels compute: the order of a model's nodes does not
  // matter.
  constexpr double kTie = 1e-12;
  const double scale = 1 + kTie * double(pattern.signature.low % 1024);
  time.seconds = time.seconds < 0 ? kNever : time.seconds * scale;
  for (auto &[units, seconds] : time.ofUnits)
    seconds *= scale;
  return known[vertices] = &(ofEqual[key] = std::move(time));
}

} // namespace fusec

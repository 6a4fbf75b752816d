#include "Fusion/Judge.h"

namespace fusec {

size_t Judge::HashOf::operator()(const Phases &phases) const {
  uint64_t hash = 0;
  for (const std::vector<int> &phase : phases)
    hash = hash128(phase.data(), phase.size() * sizeof(int), hash + 1).low;
  return hash;
}

Result<double> Judge::seconds(const Phases &phases) {
  if (!region.vertices[phases[0][0]].equation)
    return 0.0;
  if (auto it = known.find(phases); it != known.end())
    return it->second;
  const Group group = groupOf(phases);
  const Hash128 key = keys.key(group);
  if (auto it = ofEqual.find(key); it != ofEqual.end())
    return known[phases] = it->second;
  std::vector<TensorId> arguments;
  const Pattern pattern = cutPattern(
      context.program, group,
      [&](TensorId t) { return isUsedOutside(group.equations, context.uses, t); }, arguments);
  FUSEC_TRY(double seconds, oracle(pattern));
  // Plans that take equally long are told apart by what their kernels compute: the order of a model's nodes does not
  // matter.
  constexpr double kTie = 1e-12;
  seconds *= 1 + kTie * double(pattern.signature.low % 1024);
  return known[phases] = ofEqual[key] = seconds < 0 ? kNever : seconds;
}

} // namespace fusec

#include "Fusion/PatternKeys.h"

namespace fusec {

const PatternKeys::Alone &PatternKeys::alone(const Equation &equation) {
  auto [place, isNew] = known.try_emplace(&equation);
  if (isNew) {
    Alone &made = place->second;
    made.signature = cutPattern(
                         program, {{&equation}, {}}, [](TensorId) { return true; }, made.arguments)
                         .signature;
    made.inputs = made.arguments.size() - tensorsWritten(equation).size();
  }
  return place->second;
}

Hash128 PatternKeys::key(const Group &group) {
  ++groups;
  uint64_t count = 0;
  std::vector<TensorId> made;
  std::vector<uint64_t> words;
  for (const Equation *e : group.equations) {
    const Alone &own = alone(*e);
    words.insert(words.end(), {own.signature.low, own.signature.high});
    for (size_t a = 0; a < own.arguments.size(); ++a) {
      const TensorId t = own.arguments[a];
      Use &use = table[static_cast<size_t>(t)];
      if (use.group != groups)
        use = {groups, count++, 0};
      words.push_back(use.number);
      if (a < own.inputs)
        ++use.readers;
      else
        made.push_back(t);
    }
  }
  for (TensorId t : made) {
    auto all = uses.find(t);
    words.push_back(all != uses.end() && all->second > table[static_cast<size_t>(t)].readers);
  }
  for (int start : group.phaseStarts)
    words.push_back(static_cast<uint64_t>(start));
  return hash128(words.data(), words.size() * sizeof(uint64_t));
}

} // namespace fusec

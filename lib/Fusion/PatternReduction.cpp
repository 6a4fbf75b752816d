#include "Fusion/PatternReduction.h"

#include <algorithm>

namespace fusec {

/// An odometer over "nothing, its first offer, ..." of each consumer.
static bool advance(std::vector<size_t> &choice, std::span<const Offers> consumers) {
  for (size_t c = 0; c < choice.size(); ++c) {
    if (++choice[c] <= consumers[c].size())
      return true;
    choice[c] = 0;
  }
  return false;
}

static bool contains(const std::vector<Candidate> &candidates, const std::vector<int> &vertices) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate &c) { return c.vertices == vertices; });
}

std::vector<Candidate> PatternReduction::combine(const std::vector<int> &own,
                                                 std::span<const Offers> consumers) {
  std::vector<Candidate> all;
  if (static_cast<int>(consumers.size()) > limits.consumersTogether) {
    const size_t first = firstGroup(consumers);
    std::vector<Candidate> left = combine(own, consumers.first(first));
    std::vector<Candidate> right = combine(own, consumers.subspan(first));
    all = left;
    for (const Candidate &r : right)
      if (!contains(all, r.vertices))
        all.push_back(r);
    for (const Candidate &l : left)
      for (const Candidate &r : right)
        addUnion(own, {&l.vertices, &r.vertices}, all);
  } else {
    std::vector<size_t> choice(consumers.size(), 0);
    while (advance(choice, consumers)) {
      std::vector<const std::vector<int> *> parts;
      for (size_t c = 0; c < consumers.size(); ++c)
        if (choice[c] > 0)
          parts.push_back(&consumers[c][choice[c] - 1]);
      addUnion(own, parts, all);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate &a, const Candidate &b) { return a.gain > b.gain; });
  if (static_cast<int>(all.size()) > limits.topPatterns)
    all.resize(static_cast<size_t>(limits.topPatterns));
  if (note)
    note(all);
  return all;
}

void PatternReduction::addUnion(const std::vector<int> &own,
                                const std::vector<const std::vector<int> *> &parts,
                                std::vector<Candidate> &out) const {
  std::vector<int> all = own;
  for (const std::vector<int> *part : parts)
    all.insert(all.end(), part->begin(), part->end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (contains(out, all) || !isPattern(all))
    return;
  const double gained = gain(all);
  out.push_back({std::move(all), gained});
}

} // namespace fusec

#include "Fusion/Explore.h"

#include <algorithm>

namespace fusec {

namespace {

class Explorer {
public:
  Explorer(const FusionContext &context, const Region &region, const Score &score,
           const FusionLimits &limits)
      : context(context), region(region), score(score), limits(limits),
        alone(region.vertices.size(), -1), candidates(region.vertices.size()) {}

  std::vector<std::vector<Candidate>> run() {
    for (int v = static_cast<int>(region.vertices.size()); v-- > 0;) {
      if (!region.vertices[v].equation)
        continue;
      std::vector<Candidate> found = combine(v, region.vertices[v].consumers);
      std::erase_if(found, [](const Candidate &c) { return c.gain <= 0; });
      candidates[v] = std::move(found);
    }
    return std::move(candidates);
  }

private:
  /// The best patterns of v and some of these consumers, not v alone.
  std::vector<Candidate> combine(int v, const std::vector<int> &consumers) {
    if (static_cast<int>(consumers.size()) > limits.consumersTogether) {
      size_t half = consumers.size() / 2;
      std::vector<Candidate> left = combine(v, {consumers.begin(), consumers.begin() + half});
      std::vector<Candidate> right = combine(v, {consumers.begin() + half, consumers.end()});
      std::vector<Candidate> all = left;
      all.insert(all.end(), right.begin(), right.end());
      for (const Candidate &l : left)
        for (const Candidate &r : right)
          addUnion(v, {&l.vertices, &r.vertices}, all);
      return best(std::move(all));
    }
    // Odometer over "not taken, alone, its first candidate, ..." of each consumer.
    std::vector<size_t> choice(consumers.size(), 0);
    std::vector<Candidate> all;
    while (advance(choice, consumers)) {
      std::vector<const std::vector<int> *> parts;
      std::vector<std::vector<int>> singles;
      singles.reserve(consumers.size());
      for (size_t c = 0; c < consumers.size(); ++c) {
        if (choice[c] == 1) {
          singles.push_back({consumers[c]});
          parts.push_back(&singles.back());
        } else if (choice[c] > 1) {
          parts.push_back(&candidates[consumers[c]][choice[c] - 2].vertices);
        }
      }
      addUnion(v, parts, all);
    }
    return best(std::move(all));
  }

  bool advance(std::vector<size_t> &choice, const std::vector<int> &consumers) const {
    for (size_t c = 0; c < choice.size(); ++c) {
      size_t options = region.vertices[consumers[c]].equation
                           ? std::min<size_t>(candidates[consumers[c]].size() + 1,
                                              static_cast<size_t>(limits.topPatterns)) +
                                 1
                           : 1;
      if (++choice[c] < options)
        return true;
      choice[c] = 0;
    }
    return false;
  }

  void addUnion(int v, const std::vector<const std::vector<int> *> &parts,
                std::vector<Candidate> &out) {
    std::vector<int> all = {v};
    for (const std::vector<int> *part : parts)
      all.insert(all.end(), part->begin(), part->end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    bool known =
        std::any_of(out.begin(), out.end(), [&](const Candidate &c) { return c.vertices == all; });
    if (known || !whyNotOneKernel(context, region, all).empty() ||
        !staysAcyclic(region, {}, none(), all))
      return;
    double gain = score.gain(all);
    out.push_back({std::move(all), gain});
  }

  std::vector<Candidate> best(std::vector<Candidate> all) const {
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate &a, const Candidate &b) { return a.gain > b.gain; });
    if (static_cast<int>(all.size()) > limits.topPatterns)
      all.resize(limits.topPatterns);
    return all;
  }

  const Partition &none() const { return alone; }

  const FusionContext &context;
  const Region &region;
  const Score &score;
  const FusionLimits &limits;
  Partition alone;
  std::vector<std::vector<Candidate>> candidates;
};

} // namespace

std::vector<std::vector<Candidate>> explorePatterns(const FusionContext &context,
                                                    const Region &region, const Score &score,
                                                    const FusionLimits &limits) {
  return Explorer(context, region, score, limits).run();
}

} // namespace fusec

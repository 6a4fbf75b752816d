#include "Fusion/Explore.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <set>
#include <span>

namespace fusec {

namespace {

/// What a consumer brings into a pattern of its producer: one of these sets of vertices, or nothing.
using Offers = std::vector<std::vector<int>>;

/// Combines what consumers offer, a few of them at once, and keeps the best patterns: see explorePatterns.
class Reduction {
public:
  Reduction(const FusionLimits &limits, std::function<bool(const std::vector<int> &)> isPattern,
            std::function<double(const std::vector<int> &)> gain)
      : limits(limits), isPattern(std::move(isPattern)), gain(std::move(gain)) {}

  /// Where consumers are too many to be combined at once: how many of them the first half takes.
  std::function<size_t(std::span<const Offers>)> firstHalf = [](std::span<const Offers> consumers) {
    return consumers.size() / 2;
  };
  /// Told of the patterns of every part of the consumers.
  std::function<void(const std::vector<Candidate> &)> note;

  /// The best patterns of `own` and of what some of the consumers offer, not `own` alone.
  std::vector<Candidate> combine(const std::vector<int> &own, std::span<const Offers> consumers) {
    std::vector<Candidate> all;
    if (static_cast<int>(consumers.size()) > limits.consumersTogether) {
      const size_t half = firstHalf(consumers);
      std::vector<Candidate> left = combine(own, consumers.first(half));
      std::vector<Candidate> right = combine(own, consumers.subspan(half));
      all = left;
      all.insert(all.end(), right.begin(), right.end());
      for (const Candidate &l : left)
        for (const Candidate &r : right)
          addUnion(own, {&l.vertices, &r.vertices}, all);
    } else {
      // Odometer over "nothing, its first offer, ..." of each consumer.
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

private:
  static bool advance(std::vector<size_t> &choice, std::span<const Offers> consumers) {
    for (size_t c = 0; c < choice.size(); ++c) {
      if (++choice[c] <= consumers[c].size())
        return true;
      choice[c] = 0;
    }
    return false;
  }

  void addUnion(const std::vector<int> &own, const std::vector<const std::vector<int> *> &parts,
                std::vector<Candidate> &out) const {
    std::vector<int> all = own;
    for (const std::vector<int> *part : parts)
      all.insert(all.end(), part->begin(), part->end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const Candidate &c) { return c.vertices == all; });
    if (known || !isPattern(all))
      return;
    const double gained = gain(all);
    out.push_back({std::move(all), gained});
  }

  const FusionLimits &limits;
  const std::function<bool(const std::vector<int> &)> isPattern;
  const std::function<double(const std::vector<int> &)> gain;
};

void dropUseless(std::vector<Candidate> &candidates) {
  std::erase_if(candidates, [](const Candidate &c) { return c.gain <= 0; });
}

} // namespace

std::vector<std::vector<Candidate>> explorePatterns(const FusionContext &context,
                                                    const Region &region, const Score &score,
                                                    const FusionLimits &limits) {
  const Partition none(region.vertices.size(), -1);
  Reduction reduction(
      limits,
      [&](const std::vector<int> &all) {
        return whyNotOneKernel(context, region, all).empty() && staysAcyclic(region, {}, none, all);
      },
      [&](const std::vector<int> &all) { return score.gain(all); });
  std::vector<std::vector<Candidate>> candidates(region.vertices.size());
  for (int v = static_cast<int>(region.vertices.size()); v-- > 0;) {
    if (!region.vertices[v].equation)
      continue;
    std::vector<Offers> consumers;
    for (int c : region.vertices[v].consumers) {
      if (!region.vertices[c].equation)
        continue;
      Offers offers = {{c}};
      for (const Candidate &candidate : candidates[c])
        if (static_cast<int>(offers.size()) < limits.topPatterns)
          offers.push_back(candidate.vertices);
      consumers.push_back(std::move(offers));
    }
    candidates[v] = reduction.combine({v}, consumers);
    dropUseless(candidates[v]);
  }
  return candidates;
}

namespace {

/// A draft's kernel as a consumer of the virtual vertex.
struct Consumer {
  int depth;      // kernels on the longest way to it
  Hash128 shared; // the first of the equations that make what it reads
  Hash128 computes;
  int first; // its first vertex
  auto operator<=>(const Consumer &) const = default;
};

std::vector<Consumer> consumersOf(const Region &region, const VertexSets &sets,
                                  const Partition &partition,
                                  const std::function<Hash128(int)> &computes) {
  std::vector<Consumer> consumers;
  std::vector<int> depthOf(region.vertices.size(), 0);
  for (const std::vector<int> &kernel : topologicalOrder(region, sets, partition)) {
    constexpr Hash128 kLast{UINT64_MAX, UINT64_MAX}; // inputs of the model alone
    Consumer consumer{0, kLast, kLast, kernel.front()};
    for (int v : kernel)
      for (int p : region.vertices[v].producers)
        if (!std::binary_search(kernel.begin(), kernel.end(), p)) {
          consumer.depth = std::max(consumer.depth, depthOf[p] + 1);
          if (region.vertices[p].equation)
            consumer.shared = std::min(consumer.shared, computes(p));
        }
    for (int v : kernel)
      depthOf[v] = consumer.depth;
    if (!region.vertices[kernel.front()].equation)
      continue;
    for (int v : kernel)
      consumer.computes = std::min(consumer.computes, computes(v));
    consumers.push_back(consumer);
  }
  std::sort(consumers.begin(), consumers.end());
  return consumers;
}

/// A value goes from one kernel of the draft to another one, both of these vertices: the other searches look at such
/// kernels.
bool areNeighbours(const Region &region, const VertexSets &sets, const Partition &partition,
                   const std::vector<int> &vertices) {
  for (int v : vertices) {
    const std::vector<int> kernel = kernelOf(sets, partition, v);
    for (int p : region.vertices[v].producers)
      if (std::binary_search(vertices.begin(), vertices.end(), p) &&
          !std::binary_search(kernel.begin(), kernel.end(), p))
        return true;
  }
  return false;
}

} // namespace

std::vector<Candidate> remotePatterns(const FusionContext &context, const Region &region,
                                      const Score &score, const FusionLimits &limits,
                                      const VertexSets &sets, const Partition &partition,
                                      const std::function<Hash128(int)> &computes) {
  const std::vector<Consumer> consumers = consumersOf(region, sets, partition, computes);
  std::vector<Offers> offers;
  std::map<int, double> gainOf; // of the draft's kernels, by their first vertices
  for (const Consumer &consumer : consumers) {
    std::vector<int> kernel = kernelOf(sets, partition, consumer.first);
    gainOf[consumer.first] = kernel.size() > 1 ? score.gain(kernel) : 0;
    offers.push_back({std::move(kernel)});
  }
  auto gain = [&](const std::vector<int> &all) {
    double before = 0;
    size_t covered = 0;
    for (int v : all)
      if (auto kernel = gainOf.find(v); kernel != gainOf.end()) {
        before += kernel->second;
        covered += kernelOf(sets, partition, v).size();
      }
    assert(covered == all.size() && "patterns are made of whole kernels");
    return all == kernelOf(sets, partition, all.front()) ? 0 : score.gain(all) - before;
  };
  Reduction reduction(
      limits,
      [&](const std::vector<int> &all) {
        return !areNeighbours(region, sets, partition, all) &&
               whyNotOneKernel(context, region, all).empty() &&
               staysAcyclic(region, sets, partition, all);
      },
      gain);
  // Kernels of one depth never need each other, those that read the same value save most: parted last.
  reduction.firstHalf = [&](std::span<const Offers> part) {
    const size_t begin = static_cast<size_t>(part.data() - offers.data());
    const size_t middle = part.size() / 2;
    auto boundary = [&](size_t i, auto key) {
      return key(consumers[begin + i - 1]) != key(consumers[begin + i]);
    };
    auto nearest = [&](auto key) {
      for (size_t off = 0; off < middle; ++off)
        for (size_t i : {middle - off, middle + off})
          if (i > 0 && i < part.size() && boundary(i, key))
            return i;
      return size_t{0};
    };
    if (size_t i = nearest([](const Consumer &c) { return c.depth; }))
      return i;
    if (size_t i = nearest([](const Consumer &c) { return c.shared; }))
      return i;
    return middle;
  };
  std::set<std::vector<int>> met;
  std::vector<Candidate> candidates;
  reduction.note = [&](const std::vector<Candidate> &part) {
    for (const Candidate &c : part)
      if (c.gain > 0 && met.insert(c.vertices).second)
        candidates.push_back(c);
  };
  reduction.combine({}, offers);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) { return a.gain > b.gain; });
  return candidates;
}

} // namespace fusec

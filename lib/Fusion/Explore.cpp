#include "Fusion/Explore.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace fusec {

namespace {

void dropUseless(std::vector<Candidate> &candidates) {
  std::erase_if(candidates, [](const Candidate &c) { return c.gain <= 0; });
}

} // namespace

std::vector<std::vector<Candidate>> explorePatterns(const FusionContext &context,
                                                    const SearchGraph &region,
                                                    const QuickCost &quick,
                                                    const FusionLimits &limits) {
  const Partition none(region.vertices.size(), -1);
  PatternReduction reduction(
      limits,
      [&](const std::vector<int> &all) {
        return whyNotOneKernel(context, region, all).empty() && staysAcyclic(region, {}, none, all);
      },
      [&](const std::vector<int> &all) { return quick.gain(all); });
  std::vector<std::vector<Candidate>> candidates(region.vertices.size());
  for (int v = static_cast<int>(region.vertices.size()); v-- > 0;) {
    if (!region.vertices[v].equation)
      continue;
    std::vector<Offers> consumers;
    for (int c : region.vertices[v].consumers) {
      if (!region.vertices[c].equation)
        continue;
      Offers offers;
      for (const Candidate &candidate : candidates[c])
        offers.push_back(candidate.vertices);
      // Alone it saves nothing: the last of its patterns.
      if (static_cast<int>(offers.size()) < limits.topPatterns)
        offers.push_back({c});
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

std::vector<Consumer> consumersOf(const SearchGraph &region, const VertexSets &sets,
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
bool areNeighbours(const SearchGraph &region, const VertexSets &sets, const Partition &partition,
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

std::vector<Candidate> remotePatterns(const FusionContext &context, const SearchGraph &region,
                                      const QuickCost &quick, const FusionLimits &limits,
                                      const VertexSets &sets, const Partition &partition,
                                      const std::function<Hash128(int)> &computes) {
  const std::vector<Consumer> consumers = consumersOf(region, sets, partition, computes);
  std::vector<Offers> offers;
  std::map<int, double> gainOf; // of the draft's kernels, by their first vertices
  for (const Consumer &consumer : consumers) {
    std::vector<int> kernel = kernelOf(sets, partition, consumer.first);
    gainOf[consumer.first] = kernel.size() > 1 ? quick.gain(kernel) : 0;
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
    const bool isKernel = all == kernelOf(sets, partition, all.front());
    return isKernel || !std::isfinite(before) ? 0 : quick.gain(all) - before;
  };
  PatternReduction reduction(
      limits,
      [&](const std::vector<int> &all) {
        return !areNeighbours(region, sets, partition, all) &&
               whyNotOneKernel(context, region, all).empty() &&
               staysAcyclic(region, sets, partition, all);
      },
      gain);
  // Kernels of one depth never need each other, those that read the same value save most: parted last.
  reduction.firstGroup = [&](std::span<const Offers> part) {
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

#include "Fusion/HillClimb.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <ranges>
#include <set>
#include <utility>

namespace fusec {

namespace {

constexpr int kMaxRounds = 4; // most climbs end sooner, where a round changes nothing

/// What the contraction v leads to without another one on the way: for each such contraction the vertices on all ways
/// to it, both ends included.
VertexSets chainsFrom(const SearchGraph &region, int v) {
  std::set<int> reached = {v}, ends;
  const int count = static_cast<int>(region.vertices.size());
  for (int u = v + 1; u < std::min(count, v + kSearchWindow); ++u) {
    const SearchGraph::Vertex &vertex = region.vertices[u];
    if (vertex.equation &&
        std::ranges::any_of(vertex.producers, [&](int p) { return reached.contains(p); }))
      (vertex.contraction ? ends : reached).insert(u);
  }
  VertexSets chains;
  for (int end : ends) {
    std::set<int> needed = {end};
    for (auto u = reached.rbegin(); u != reached.rend(); ++u)
      if (std::ranges::any_of(region.vertices[*u].consumers,
                              [&](int c) { return needed.contains(c); }))
        needed.insert(*u);
    chains.emplace_back(needed.begin(), needed.end());
  }
  return chains;
}

/// A hash of the parts of an equation that do not depend on the extents of its axes.
Hash128 withoutExtents(const Equation &e) {
  std::vector<uint64_t> words = {static_cast<uint64_t>(e.kind), static_cast<uint64_t>(e.monoid),
                                 e.axes.size(), static_cast<uint64_t>(e.numSpatial)};
  for (const Scalar &s : e.body.nodes) {
    words.push_back(static_cast<uint64_t>(s.op) << 32 | static_cast<uint64_t>(s.type));
    words.insert(words.end(), s.args.begin(), s.args.end());
  }
  return hash128(words.data(), words.size() * sizeof(uint64_t));
}

} // namespace

HillClimb::HillClimb(const FusionContext &context, const SearchGraph &region,
                     const QuickCost &quick, AccurateCost &accurate, VertexSets &sets)
    : context(context), region(region), quick(quick), accurate(accurate), sets(sets) {
  for (size_t v = 0; v < region.vertices.size(); ++v) {
    const SearchGraph::Vertex &vertex = region.vertices[v];
    shapeless.push_back(vertex.equation ? withoutExtents(*vertex.equation) : Hash128());
    for (TensorId t : vertex.reads)
      readersOf[t].push_back(static_cast<int>(v));
  }
}

Status HillClimb::improve(PlanDraft &draft, double perKernel) {
  // Chains last: joined first, they keep neighbours from finding better partners (BERT on gfx90a, 6 %).
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    FUSEC_CHECK(improvePairs(draft, perKernel));
    changed = false;
    for (int v = 0; v < static_cast<int>(region.vertices.size()) && !accurate.isSpent(); ++v) {
      FUSEC_TRY(const bool chained, joinChains(draft, v, perKernel));
      changed = changed || chained;
    }
  }
  return success();
}

Result<bool> HillClimb::improveByMoves(PlanDraft &draft, double perKernel) {
  bool any = false, changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (int v = 0; v < static_cast<int>(region.vertices.size()) && !accurate.isSpent(); ++v) {
      FUSEC_TRY(const bool moved, moveToNeighbour(draft, v));
      changed = changed || moved;
    }
    if (changed)
      FUSEC_CHECK(improve(draft, perKernel));
    any = any || changed;
  }
  return any;
}

Status HillClimb::improvePairs(PlanDraft &draft, double perKernel) {
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (int v = 0; v < static_cast<int>(region.vertices.size()); ++v) {
      if (accurate.isSpent())
        return success();
      if (!region.vertices[v].equation)
        continue;
      FUSEC_TRY(bool joined, joinWithConsumers(draft, v, perKernel));
      bool packed = false;
      if (context.packs) {
        FUSEC_TRY(packed, joinBeside(draft, v, perKernel));
      }
      FUSEC_TRY(bool cut, cutBefore(draft, v, perKernel));
      changed = changed || joined || packed || cut;
    }
  }
  return success();
}

Result<bool> HillClimb::joinWithConsumers(PlanDraft &draft, int v, double perKernel) {
  bool changed = false;
  for (int c : region.vertices[v].consumers) {
    // The accurate model is asked where the quick one sees a chance.
    constexpr double kChance = 1.5;
    FUSEC_TRY(bool joined, join(draft, v, c, kChance, perKernel));
    changed = changed || joined;
  }
  return changed;
}

Result<bool> HillClimb::joinBeside(PlanDraft &draft, int v, double perKernel) {
  constexpr size_t kSharing = 6, kNext = 4; // kernels that are looked at
  constexpr double kChance = 1;
  if (kernelOf(sets, draft.partition, v).front() != v)
    return false;
  std::vector<int> others;
  auto add = [&](int u, size_t most) {
    if (u <= v || u > v + kSearchWindow || !region.vertices[u].equation || others.size() >= most)
      return;
    const int first = kernelOf(sets, draft.partition, u).front();
    if (first > v && std::count(others.begin(), others.end(), first) == 0)
      others.push_back(first);
  };
  for (TensorId t : region.vertices[v].reads)
    for (int u : readersOf.at(t))
      add(u, kSharing);
  const size_t most = others.size() + kNext;
  const int count = static_cast<int>(region.vertices.size());
  for (int u = v + 1; u < std::min(count, v + kSearchWindow) && others.size() < most; ++u)
    add(u, most);
  bool changed = false;
  for (int u : others) {
    FUSEC_TRY(bool joined, join(draft, v, u, kChance, perKernel));
    changed = changed || joined;
  }
  return changed;
}

Result<bool> HillClimb::join(PlanDraft &draft, int v, int u, double chance, double perKernel) {
  std::vector<int> a = kernelOf(sets, draft.partition, v), b = kernelOf(sets, draft.partition, u);
  if (a == b || !region.vertices[u].equation)
    return false;
  std::vector<int> all = united(a, b);
  FUSEC_TRY(double first, accurate.kernelSeconds(a));
  FUSEC_TRY(double second, accurate.kernelSeconds(b));
  if (accurate.leastSeconds() >= first + second - perKernel ||
      !whyNotOneKernel(context, region, all).empty() ||
      !staysAcyclic(region, sets, draft.partition, all))
    return false;
  if (quick.kernelSeconds(all) > chance * (quick.kernelSeconds(a) + quick.kernelSeconds(b)))
    return false;
  FUSEC_TRY(double together, accurate.kernelSeconds(all));
  if (together >= first + second - perKernel)
    return false;
  assign(draft, sets, all);
  return true;
}

Result<bool> HillClimb::joinChains(PlanDraft &draft, int v, double perKernel) {
  if (!context.trees || !region.vertices[v].contraction)
    return false;
  bool changed = false;
  for (const std::vector<int> &chain : chainsFrom(region, v)) {
    FUSEC_TRY(bool joined,
              takeTogether(draft, united(kernelOf(sets, draft.partition, v), chain), perKernel));
    if (!joined) {
      FUSEC_TRY(joined, takeTogether(draft, chain, perKernel));
    }
    changed = changed || joined;
  }
  return changed;
}

Result<bool> HillClimb::moveToNeighbour(PlanDraft &draft, int v) {
  constexpr double kChance = 1.5;    // as for joins
  constexpr double kSaved = 0;       // by phases: of two kernels become two
  constexpr size_t kMostKernels = 8; // that are looked at: a concatenation may have hundreds
  const SearchGraph::Vertex &vertex = region.vertices[v];
  const std::vector<int> own = kernelOf(sets, draft.partition, v);
  if (!vertex.equation || own.size() == 1 || !isMovable(own))
    return false;
  std::vector<int> without = own;
  std::erase(without, v);
  std::set<int> tried = {own.front()}; // first vertices of kernels
  for (const std::vector<int> *neighbours : {&vertex.producers, &vertex.consumers})
    for (int u : *neighbours) {
      const std::vector<int> kernel = kernelOf(sets, draft.partition, u);
      if (tried.size() > kMostKernels)
        return false;
      if (!region.vertices[u].equation || !tried.insert(kernel.front()).second ||
          !isMovable(kernel))
        continue;
      const std::vector<int> with = united(kernel, {v});
      if (quick.kernelSeconds(with) + quick.kernelSeconds(without) >
          kChance * (quick.kernelSeconds(own) + quick.kernelSeconds(kernel)))
        continue;
      FUSEC_TRY(const bool moved, takeTogether(draft, with, kSaved));
      if (moved)
        return true;
    }
  return false;
}

bool HillClimb::isMovable(const std::vector<int> &kernel) const {
  constexpr size_t kMost = 16; // to price larger kernels takes longer than one equation is worth
  return kernel.size() <= kMost && std::ranges::all_of(kernel, [&](int v) {
           return equationsWeighed(*region.vertices[v].equation) == 1;
         });
}

Result<bool> HillClimb::takeTogether(PlanDraft &draft, const std::vector<int> &chain,
                                     double perKernel) {
  VertexSets before, after = {chain};
  for (int v : chain) {
    std::vector<int> kernel = kernelOf(sets, draft.partition, v);
    if (std::ranges::find(before, kernel) != before.end())
      continue;
    std::vector<int> rest;
    std::ranges::set_difference(kernel, chain, std::back_inserter(rest));
    if (!rest.empty())
      after.push_back(std::move(rest));
    before.push_back(std::move(kernel));
  }
  if (before.size() < 2 || !std::ranges::all_of(after, [&](const std::vector<int> &kernel) {
        return whyNotOneKernel(context, region, kernel).empty();
      }))
    return false;
  // The quick model knows nothing of trees: it is asked for its budget's sake alone.
  if (std::isinf(quick.kernelSeconds(chain)))
    return false;
  FUSEC_TRY(const double secondsBefore, secondsOf(before, perKernel));
  if (double(after.size()) * (accurate.leastSeconds() - perKernel) >= secondsBefore)
    return false;
  FUSEC_TRY(const double secondsAfter, secondsOf(after, perKernel));
  constexpr double kLeastGain =
      1e-9; // of both: sums of the same kernels in another order differ by rounding
  if (secondsAfter >= secondsBefore * (1 - kLeastGain))
    return false;
  std::vector<std::pair<int, int>> old; // no copy of the draft: lists are long
  for (const std::vector<int> &kernel : before)
    for (int v : kernel)
      old.emplace_back(v, std::exchange(draft.partition[v], -1));
  for (const std::vector<int> &kernel : after) {
    if (!staysAcyclic(region, sets, draft.partition, kernel)) {
      for (const auto &[v, set] : old)
        draft.partition[v] = set;
      return false;
    }
    assign(draft, sets, kernel);
  }
  return true;
}

Result<double> HillClimb::secondsOf(const VertexSets &kernels, double perKernel) {
  double sum = 0;
  for (const std::vector<int> &kernel : kernels) {
    FUSEC_TRY(const double seconds, accurate.kernelSeconds(kernel));
    sum += seconds - perKernel;
  }
  return sum;
}

Result<bool> HillClimb::cutBefore(PlanDraft &draft, int v, double perKernel) {
  std::vector<int> whole = kernelOf(sets, draft.partition, v);
  auto place = std::find(whole.begin(), whole.end(), v);
  if (place == whole.begin())
    return false;
  std::vector<int> head(whole.begin(), place), tail(place, whole.end());
  if (!whyNotOneKernel(context, region, head).empty() ||
      !whyNotOneKernel(context, region, tail).empty())
    return false;
  FUSEC_TRY(double together, accurate.kernelSeconds(whole));
  if (2 * accurate.leastSeconds() - perKernel >= together)
    return false;
  constexpr int kMostLost = 32; // more than the widths that any network has
  int &lost = lostCuts[keyOfCut(whole, v, perKernel)];
  if (lost >= kMostLost)
    return false;
  const int64_t asked = accurate.evaluations();
  FUSEC_TRY(double first, accurate.kernelSeconds(head));
  double both = first + accurate.leastSeconds();
  if (both - perKernel < together) {
    FUSEC_TRY(const double second, accurate.kernelSeconds(tail));
    both = first + second;
  }
  if (both - perKernel >= together) {
    lost += accurate.evaluations() > asked;
    return false;
  }
  lost = 0;
  assign(draft, sets, head);
  assign(draft, sets, tail);
  return true;
}

Hash128 HillClimb::keyOfCut(const std::vector<int> &whole, int v, double perKernel) {
  std::vector<uint64_t> words = {std::bit_cast<uint64_t>(perKernel)};
  for (int u : whole)
    words.insert(words.end(), {uint64_t{u == v}, shapeless[u].high, shapeless[u].low});
  return hash128(words.data(), words.size() * sizeof(uint64_t));
}

} // namespace fusec

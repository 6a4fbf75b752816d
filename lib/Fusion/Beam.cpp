#include "Fusion/Beam.h"

#include <algorithm>
#include <queue>

namespace fusec {

std::vector<PlanDraft> beamSearch(const Region &region,
                                  const std::vector<std::vector<Candidate>> &candidates,
                                  const FusionLimits &limits, VertexSets &sets) {
  const int count = static_cast<int>(region.vertices.size());
  std::vector<PlanDraft> beam = {{"beam", Partition(count, -1)}};
  std::vector<int> firstSet(count, 0);
  for (int v = 0; v < count; ++v) {
    firstSet[v] = static_cast<int>(sets.size());
    for (const Candidate &c : candidates[v])
      sets.push_back(c.vertices);
    if (candidates[v].empty())
      continue;
    std::vector<PlanDraft> next;
    for (PlanDraft &draft : beam) {
      for (size_t c = 0; draft.partition[v] < 0 && c < candidates[v].size(); ++c) {
        const std::vector<int> &vertices = candidates[v][c].vertices;
        bool free = std::all_of(vertices.begin(), vertices.end(),
                                [&](int u) { return draft.partition[u] < 0; });
        if (!free || !staysAcyclic(region, sets, draft.partition, vertices))
          continue;
        PlanDraft taken = draft;
        taken.gain += candidates[v][c].gain;
        for (int u : vertices)
          taken.partition[u] = firstSet[v] + static_cast<int>(c);
        next.push_back(std::move(taken));
      }
      next.push_back(std::move(draft));
    }
    std::stable_sort(next.begin(), next.end(),
                     [](const PlanDraft &a, const PlanDraft &b) { return a.gain > b.gain; });
    if (static_cast<int>(next.size()) > limits.beamWidth)
      next.resize(limits.beamWidth);
    beam = std::move(next);
  }
  return beam;
}

namespace {

void take(PlanDraft &draft, VertexSets &sets, const std::vector<int> &vertices) {
  for (int v : vertices)
    draft.partition[v] = static_cast<int>(sets.size());
  sets.push_back(vertices);
}

} // namespace

PlanDraft greedyMerge(const FusionContext &context, const Region &region, const Score &score,
                      VertexSets &sets) {
  const int count = static_cast<int>(region.vertices.size());
  PlanDraft draft{"greedy", Partition(count, -1)};
  struct Edge {
    double gain;
    int producer, consumer;
    size_t sizes; // of both kernels when the gain was computed
    bool operator<(const Edge &o) const {
      return std::tie(gain, o.producer, o.consumer) < std::tie(o.gain, producer, consumer);
    }
  };
  std::priority_queue<Edge> edges;
  auto consider = [&](int p, int c) {
    std::vector<int> a = kernelOf(sets, draft.partition, p), b = kernelOf(sets, draft.partition, c);
    if (a == b)
      return;
    std::vector<int> all = united(a, b);
    if (!whyNotOneKernel(context, region, all).empty())
      return;
    double gain =
        score.gain(all) - (a.size() > 1 ? score.gain(a) : 0) - (b.size() > 1 ? score.gain(b) : 0);
    if (gain > 0)
      edges.push({gain, p, c, all.size()});
  };
  for (int p = 0; p < count; ++p)
    for (int c : region.vertices[p].consumers)
      consider(p, c);
  while (!edges.empty()) {
    Edge edge = edges.top();
    edges.pop();
    std::vector<int> a = kernelOf(sets, draft.partition, edge.producer),
                     b = kernelOf(sets, draft.partition, edge.consumer);
    if (a == b)
      continue;
    std::vector<int> all = united(a, b);
    if (all.size() != edge.sizes) { // one of them has grown since
      consider(edge.producer, edge.consumer);
      continue;
    }
    if (!staysAcyclic(region, sets, draft.partition, all))
      continue;
    draft.gain += edge.gain;
    take(draft, sets, all);
    for (int v : all) {
      for (int p : region.vertices[v].producers)
        consider(p, v);
      for (int c : region.vertices[v].consumers)
        consider(v, c);
    }
  }
  return draft;
}

PlanDraft topDown(const FusionContext &context, const Region &region, const Score &score,
                  VertexSets &sets) {
  const int count = static_cast<int>(region.vertices.size());
  PlanDraft draft{"top-down", Partition(count, -1)};
  std::vector<int> open; // the kernel that is growing
  auto close = [&] {
    if (open.size() > 1 && score.gain(open) > 0) {
      draft.gain += score.gain(open);
      take(draft, sets, open);
    }
    open.clear();
  };
  for (int v = 0; v < count; ++v) {
    if (!region.vertices[v].equation) {
      close();
      continue;
    }
    std::vector<int> longer = open;
    longer.push_back(v);
    if (!open.empty() && whyNotOneKernel(context, region, longer).empty() &&
        staysAcyclic(region, sets, draft.partition, longer)) {
      open = std::move(longer);
      continue;
    }
    close();
    open = {v};
  }
  close();
  return draft;
}

} // namespace fusec

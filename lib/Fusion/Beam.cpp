#include "Fusion/Beam.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace fusec {

namespace {

constexpr int kStaysAlone = -1;

/// A draft of the beam with one more vertex decided.
struct Step {
  size_t draft;
  int candidate; // of the vertex, or kStaysAlone
  double gain;
};

} // namespace

std::vector<PlanDraft> beamSearch(const SearchGraph &region,
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
    std::vector<Step> steps;
    for (size_t d = 0; d < beam.size(); ++d) {
      const PlanDraft &draft = beam[d];
      for (size_t c = 0; draft.partition[v] < 0 && c < candidates[v].size(); ++c) {
        const std::vector<int> &vertices = candidates[v][c].vertices;
        bool free = std::all_of(vertices.begin(), vertices.end(),
                                [&](int u) { return draft.partition[u] < 0; });
        if (free && staysAcyclic(region, sets, draft.partition, vertices))
          steps.push_back({d, static_cast<int>(c), draft.gain + candidates[v][c].gain});
      }
      steps.push_back({d, kStaysAlone, draft.gain});
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step &a, const Step &b) { return a.gain > b.gain; });
    if (static_cast<int>(steps.size()) > limits.beamWidth)
      steps.resize(static_cast<size_t>(limits.beamWidth));
    // A partition is as long as the list: only drafts that branch are copied.
    std::vector<PlanDraft> next;
    for (size_t s = 0; s < steps.size(); ++s) {
      const Step &step = steps[s];
      const bool isLast =
          std::none_of(steps.begin() + static_cast<std::ptrdiff_t>(s) + 1, steps.end(),
                       [&](const Step &o) { return o.draft == step.draft; });
      next.push_back(isLast ? std::move(beam[step.draft]) : beam[step.draft]);
      next.back().gain = step.gain;
      if (step.candidate != kStaysAlone)
        for (int u : candidates[v][step.candidate].vertices)
          next.back().partition[u] = firstSet[v] + step.candidate;
    }
    beam = std::move(next);
  }
  return beam;
}

void assign(PlanDraft &draft, VertexSets &sets, const std::vector<int> &vertices) {
  int set = -1;
  if (vertices.size() > 1) {
    set = static_cast<int>(sets.size());
    sets.push_back(vertices);
  }
  for (int v : vertices)
    draft.partition[v] = set;
}

PlanDraft greedyMerge(const FusionContext &context, const SearchGraph &region,
                      const QuickCost &quick, VertexSets &sets) {
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
        quick.gain(all) - (a.size() > 1 ? quick.gain(a) : 0) - (b.size() > 1 ? quick.gain(b) : 0);
    if (gain > 0)
      edges.push({gain, p, c, all.size()});
  };
  // A value is moved once for neighbours that read it too: the halves of a split become one kernel.
  std::map<TensorId, int> reader;
  std::vector<std::vector<int>> sharing(region.vertices.size());
  for (int v = 0; v < count; ++v)
    for (TensorId t : region.vertices[v].reads) {
      auto [it, isNew] = reader.emplace(t, v);
      const int before = std::exchange(it->second, v);
      if (isNew || context.program.tensors[t].kind == TensorKind::Constant)
        continue;
      sharing[before].push_back(v);
      sharing[v].push_back(before);
    }
  for (int p = 0; p < count; ++p) {
    for (int c : region.vertices[p].consumers)
      consider(p, c);
    for (int c : sharing[p])
      if (p < c)
        consider(p, c);
  }
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
    assign(draft, sets, all);
    // Once for each kernel beside it.
    std::set<std::pair<int, int>> between;
    for (int v : all) {
      for (int p : region.vertices[v].producers)
        between.insert({p, v});
      for (int c : region.vertices[v].consumers)
        between.insert({v, c});
      for (int u : sharing[v])
        between.insert({std::min(u, v), std::max(u, v)});
    }
    std::set<std::pair<int, bool>> beside; // first vertex, and whether it is the producer
    for (const auto &[p, c] : between) {
      const bool produces = !std::binary_search(all.begin(), all.end(), p);
      const int other = kernelOf(sets, draft.partition, produces ? p : c).front();
      if (other != all.front() && beside.insert({other, produces}).second)
        consider(p, c);
    }
  }
  return draft;
}

Result<PlanDraft> topDown(const FusionContext &context, const SearchGraph &region,
                          const std::function<Result<bool>(const std::vector<int> &)> &pays,
                          VertexSets &sets) {
  const int count = static_cast<int>(region.vertices.size());
  PlanDraft draft{"top-down", Partition(count, -1)};
  auto isReduction = [&](int v) {
    return region.vertices[v].equation->kind == EquationKind::Reduction;
  };
  // Neighbours of the list alone are together: no order among kernels is in the way.
  auto place = [&](std::vector<int> run) -> Status {
    while (!run.empty()) {
      std::vector<int> kernel = run;
      while (kernel.size() > 1) {
        if (whyNotOneKernel(context, region, kernel).empty()) {
          FUSEC_TRY(const bool isFaster, pays(kernel));
          if (isFaster)
            break;
        }
        bool isCut = false; // at a reduction's end, or where maps behind one end
        while (kernel.size() > 1 && !isCut) {
          isCut = isReduction(kernel.back());
          kernel.pop_back();
          isCut = isCut || isReduction(kernel.back());
        }
      }
      assign(draft, sets, kernel);
      run.erase(run.begin(), run.begin() + static_cast<std::ptrdiff_t>(kernel.size()));
    }
    return success();
  };
  std::vector<int> open; // the kernel that is growing
  for (int v = 0; v < count; ++v) {
    if (!region.vertices[v].equation) {
      FUSEC_CHECK(place(std::exchange(open, {})));
      continue;
    }
    std::vector<int> longer = open;
    longer.push_back(v);
    if (!open.empty() && whyNotOneKernel(context, region, longer).empty()) {
      open = std::move(longer);
      continue;
    }
    FUSEC_CHECK(place(std::exchange(open, {v})));
  }
  FUSEC_CHECK(place(std::move(open)));
  return draft;
}

void dropEqual(std::vector<PlanDraft> &drafts, const VertexSets &sets) {
  std::set<std::vector<int>> met; // the first vertex of each one's kernel
  std::erase_if(drafts, [&](const PlanDraft &draft) {
    std::vector<int> first(draft.partition.size());
    for (size_t v = 0; v < first.size(); ++v)
      first[v] = draft.partition[v] < 0 ? static_cast<int>(v) : sets[draft.partition[v]].front();
    return !met.insert(std::move(first)).second;
  });
}

} // namespace fusec

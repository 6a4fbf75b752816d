#include "Fusion/SearchGraph.h"

#include "Expr/transforms/Profile.h"
#include "Fusion/CutPattern.h"
#include "Support/Hash.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <queue>

namespace fusec {

namespace {

void addOnce(std::vector<int> &list, int v) {
  auto place = std::lower_bound(list.begin(), list.end(), v);
  if (place == list.end() || *place != v)
    list.insert(place, v);
}

/// Everything that the items inside a branch or loop read, and the sizes that they use.
void collectInner(const std::vector<Item> &items, std::vector<TensorId> &reads,
                  std::vector<SymbolId> &sizes) {
  for (const Item &item : items) {
    if (const auto *equation = std::get_if<Equation>(&item.value)) {
      std::vector<TensorId> more = tensorsRead(*equation);
      reads.insert(reads.end(), more.begin(), more.end());
      collectSymbols(*equation, sizes);
      continue;
    }
    const Control &control = std::get<Control>(item.value);
    std::vector<TensorId> own = controlReads(control);
    reads.insert(reads.end(), own.begin(), own.end());
    collectInner(control.thenItems, reads, sizes);
    collectInner(control.elseItems, reads, sizes);
  }
}

} // namespace

SearchGraph makeSearchGraph(const std::vector<Item> &items) {
  SearchGraph region;
  std::map<TensorId, int> producer;
  std::map<SymbolId, int> sizeAt; // where the host learns sizes of the data
  for (size_t i = 0; i < items.size(); ++i) {
    SearchGraph::Vertex v;
    std::vector<SymbolId> sizes;
    if (const auto *equation = std::get_if<Equation>(&items[i].value)) {
      v.equation = equation;
      v.kind = equation->kind;
      v.hasElements = std::none_of(equation->axes.begin(), equation->axes.end(),
                                   [](const Axis &axis) { return axis.extent.isConst(0); });
      v.contraction = isContraction(*equation);
      v.reads = tensorsRead(*equation);
      v.writes = tensorsWritten(*equation);
      for (const Axis &axis : equation->axes)
        axis.extent.collectSymbols(v.sizes);
      if (!sizeAt.empty())
        collectSymbols(*equation, sizes);
    } else {
      v.control = &std::get<Control>(items[i].value);
      v.reads = controlReads(*v.control);
      collectInner(v.control->thenItems, v.reads, sizes);
      collectInner(v.control->elseItems, v.reads, sizes);
      v.writes = v.control->results;
    }
    int self = static_cast<int>(i);
    auto follows = [&](int other) {
      addOnce(v.producers, other);
      addOnce(region.vertices[static_cast<size_t>(other)].consumers, self);
    };
    for (TensorId t : v.reads)
      if (auto it = producer.find(t); it != producer.end())
        follows(it->second);
    // What uses a size runs behind the point where the host learns it, and so apart from what computes it.
    for (SymbolId s : sizes)
      if (auto it = sizeAt.find(s); it != sizeAt.end())
        follows(it->second);
    if (v.control && v.control->kind == Control::Kind::Size)
      sizeAt[v.control->symbol] = self;
    for (TensorId t : v.writes)
      producer[t] = self;
    region.vertices.push_back(std::move(v));
  }
  return region;
}

std::vector<int> kernelOf(const VertexSets &sets, const Partition &partition, int v) {
  return partition[v] < 0 ? std::vector<int>{v} : sets[partition[v]];
}

std::vector<int> united(const std::vector<int> &a, const std::vector<int> &b) {
  std::vector<int> all;
  all.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

size_t VerticesHash::operator()(const std::vector<int> &vertices) const {
  return hash128(vertices.data(), vertices.size() * sizeof(int)).low;
}

VertexSets connectedParts(const SearchGraph &region, const std::vector<int> &vertices) {
  std::vector<size_t> part(vertices.size());
  for (size_t i = 0; i < vertices.size(); ++i) {
    part[i] = i;
    for (int p : region.vertices[vertices[i]].producers) {
      auto place = std::lower_bound(vertices.begin(), vertices.end(), p);
      if (place == vertices.end() || *place != p)
        continue;
      const size_t other = part[static_cast<size_t>(place - vertices.begin())], own = part[i];
      if (other != own)
        std::replace(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     std::max(other, own), std::min(other, own));
    }
  }
  VertexSets parts;
  for (size_t first = 0; first < vertices.size(); ++first) {
    std::vector<int> own;
    for (size_t i = 0; i < vertices.size(); ++i)
      if (part[i] == first)
        own.push_back(vertices[i]);
    if (!own.empty())
      parts.push_back(std::move(own));
  }
  return parts;
}

bool staysAcyclic(const SearchGraph &region, const VertexSets &sets, const Partition &partition,
                  const std::vector<int> &vertices) {
  // Nothing behind `end` leads back, since no kernel lies on both sides of it. What leads back may go through kernels
  // that begin before the new one, each up to a window before the last.
  assert(vertices.back() - vertices.front() <= kSearchWindow && "no kernel spans more (Legality)");
  int end = -1; // not known: most kernels lead nowhere
  auto findEnd = [&] {
    end = vertices.back();
    for (int v = std::max(0, end - kSearchWindow); v <= end; ++v)
      if (partition[v] >= 0)
        end = std::max(end, sets[partition[v]].back());
  };
  std::vector<uint32_t> &marks = region.marks;
  if (marks.empty() || region.lastMark > UINT32_MAX - 2) {
    marks.assign(region.vertices.size(), 0);
    region.lastMark = 0;
  }
  const uint32_t inside = ++region.lastMark, seen = ++region.lastMark;
  for (int v : vertices)
    marks[v] = inside;
  std::vector<int> pending;
  // Follows the values that vertex v makes; false if one comes back.
  auto follow = [&](int v, bool own) {
    for (int c : region.vertices[v].consumers) {
      if (c > vertices.back()) {
        if (end < 0)
          findEnd();
        if (c > end)
          continue;
      }
      if (marks[c] == inside) {
        if (!own)
          return false;
      } else if (marks[c] != seen) {
        marks[c] = seen;
        pending.push_back(c);
      }
    }
    return true;
  };
  for (int v : vertices)
    follow(v, true);
  while (!pending.empty()) {
    int v = pending.back();
    pending.pop_back();
    const int set = partition[v];
    if (set < 0) {
      if (!follow(v, false))
        return false;
      continue;
    }
    for (int m : sets[set]) {
      marks[m] = seen;
      if (!follow(m, false))
        return false;
    }
  }
  return true;
}

VertexSets topologicalOrder(const SearchGraph &region, const VertexSets &sets,
                            const Partition &partition) {
  const int count = static_cast<int>(partition.size());
  auto firstOf = [&](int v) { return partition[v] < 0 ? v : sets[partition[v]].front(); };
  // By the kernel's first vertex: values that it waits for, and who waits for each of its own.
  std::vector<int> waits(count);
  std::vector<std::vector<int>> followers(count);
  for (int v = 0; v < count; ++v)
    for (int p : region.vertices[v].producers)
      if (firstOf(p) != firstOf(v)) {
        ++waits[firstOf(v)];
        followers[firstOf(p)].push_back(firstOf(v));
      }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  int kernels = 0;
  for (int v = 0; v < count; ++v)
    if (firstOf(v) == v) {
      ++kernels;
      if (waits[v] == 0)
        ready.push(v);
    }
  VertexSets order;
  while (!ready.empty()) {
    int kernel = ready.top();
    ready.pop();
    order.push_back(kernelOf(sets, partition, kernel));
    for (int next : followers[kernel])
      if (--waits[next] == 0)
        ready.push(next);
  }
  assert(static_cast<int>(order.size()) == kernels && "the kernels have an order");
  return order;
}

} // namespace fusec

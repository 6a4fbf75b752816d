#include "Tiling/space/Trees.h"

#include <algorithm>
#include <array>

namespace fusec::tiling {

namespace {

using Loops = std::vector<int>; // ascending

Loops without(const Loops &loops, int loop) {
  Loops rest = loops;
  std::erase(rest, loop);
  return rest;
}

Loops innerLoops(const LoopSpace &space, std::span<const int> outer) {
  Loops rest;
  for (size_t l = 0; l < space.loops.size(); ++l)
    if (std::ranges::find(outer, static_cast<int>(l)) == outer.end())
      rest.push_back(static_cast<int>(l));
  return rest;
}

class Forests {
public:
  explicit Forests(const LoopSpace &space) : space(space) {}

  /// All forests of the loops in which each path holds the loops of an equation.
  std::vector<Expression> of(const Loops &loops) const {
    if (loops.empty())
      return {Expression{}};
    std::vector<Expression> all;
    std::vector<Loops> groups;
    group(components(loops), 0, groups, all);
    return all;
  }

private:
  bool isTogether(int a, int b) const {
    for (size_t e = 0; e < space.equations.size(); ++e)
      if (space.loops[static_cast<size_t>(a)].positions[e] >= 0 &&
          space.loops[static_cast<size_t>(b)].positions[e] >= 0)
        return true;
    return false;
  }

  std::vector<Loops> components(const Loops &loops) const {
    std::vector<Loops> found;
    for (int loop : loops) {
      Loops own = {loop};
      std::erase_if(found, [&](const Loops &other) {
        if (std::ranges::none_of(other, [&](int l) { return isTogether(l, loop); }))
          return false;
        own.insert(own.end(), other.begin(), other.end());
        return true;
      });
      std::ranges::sort(own);
      found.push_back(std::move(own));
    }
    return found;
  }

  /// Adds the forests whose trees have the loops of these groups, to which the components from `next` on are added in
  /// all ways.
  void group(const std::vector<Loops> &parts, size_t next, std::vector<Loops> &groups,
             std::vector<Expression> &all) const {
    if (next == parts.size())
      return combine(groups, 0, {}, all);
    for (size_t g = 0; g < groups.size(); ++g) {
      const Loops before = groups[g];
      groups[g].insert(groups[g].end(), parts[next].begin(), parts[next].end());
      std::ranges::sort(groups[g]);
      group(parts, next + 1, groups, all);
      groups[g] = before;
    }
    groups.push_back(parts[next]);
    group(parts, next + 1, groups, all);
    groups.pop_back();
  }

  void combine(const std::vector<Loops> &groups, size_t next, const Expression &before,
               std::vector<Expression> &all) const {
    if (next == groups.size()) {
      all.push_back(canonical(before, space));
      return;
    }
    for (int root : groups[next])
      for (const Expression &inner : of(without(groups[next], root))) {
        const Expression parts[] = {before, around(std::array{root}, inner)};
        combine(groups, next + 1, inTurn(parts), all);
      }
  }

  const LoopSpace &space;
};

bool isChain(const Expression &expression) {
  for (size_t n = 0; n < expression.nodes.size(); ++n)
    if (expression.nodes[n].parent != static_cast<int>(n) - 1)
      return false;
  return true;
}

} // namespace

std::vector<Expression> deepTrees(const LoopSpace &space, std::span<const int> outer) {
  std::vector<Expression> all;
  Loops order = innerLoops(space, outer);
  do
    all.push_back(around(outer, nested(order)));
  while (std::ranges::next_permutation(order).found);
  return all;
}

std::vector<Expression> flatTrees(const LoopSpace &space, std::span<const int> outer) {
  std::vector<Expression> all;
  for (const Expression &inner : Forests(space).of(innerLoops(space, outer)))
    if (!isChain(inner))
      all.push_back(around(outer, inner));
  std::ranges::sort(all);
  return all;
}

namespace {

class BlockOrder {
public:
  explicit BlockOrder(const LoopSpace &space) : space(space) {
    for (size_t e = 0; e < space.equations.size(); ++e) {
      needs.emplace_back(space.equations.size(), false);
      for (const InsideRead &read : space.reads)
        if (read.reader == static_cast<int>(e))
          for (size_t m = 0; m < e; ++m)
            if (static_cast<int>(m) == read.maker || needs[static_cast<size_t>(read.maker)][m])
              needs[e][m] = true;
    }
  }

  Expression of(std::span<const int> order, std::vector<int> equations) const {
    // Who has no loop left stands between the others'.
    std::erase_if(equations, [&](int e) {
      return std::ranges::none_of(order, [&](int loop) { return has(e, loop); });
    });
    if (equations.empty())
      return {};
    const int loop = order[0];
    const std::vector<std::vector<int>> runs = runsOf(loop, equations);
    if (runs.size() > 1) {
      std::vector<Expression> parts;
      for (const std::vector<int> &run : runs)
        parts.push_back(of(order, run));
      return inTurn(parts);
    }
    const Expression inner = of(order.subspan(1), equations);
    return has(equations[0], loop) ? around(std::array{loop}, inner) : inner;
  }

private:
  bool has(int e, int loop) const {
    return space.loops[static_cast<size_t>(loop)].positions[static_cast<size_t>(e)] >= 0;
  }

  /// Equations behind each other that can have the loop together, or that lack it.
  std::vector<std::vector<int>> runsOf(int loop, const std::vector<int> &equations) const {
    std::vector<std::vector<int>> runs;
    for (int e : equations) {
      const bool joins =
          !runs.empty() && has(runs.back()[0], loop) == has(e, loop) &&
          std::ranges::none_of(runs.back(), [&](int m) {
            return space.reduces(loop, m) && needs[static_cast<size_t>(e)][static_cast<size_t>(m)];
          });
      if (joins)
        runs.back().push_back(e);
      else
        runs.push_back({e});
    }
    return runs;
  }

  const LoopSpace &space;
  std::vector<std::vector<bool>>
      needs; // by equation: those in front of it whose values its own come from
};

} // namespace

Expression blockOrder(std::span<const int> order, const LoopSpace &space) {
  std::vector<int> equations;
  for (size_t e = 0; e < space.equations.size(); ++e)
    equations.push_back(static_cast<int>(e));
  return BlockOrder(space).of(order, equations);
}

} // namespace fusec::tiling

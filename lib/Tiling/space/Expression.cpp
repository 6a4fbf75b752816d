#include "Tiling/space/Expression.h"

#include <algorithm>

namespace fusec::tiling {

bool Expression::isInside(int node, int around) const {
  while (node > around)
    node = nodes[static_cast<size_t>(node)].parent;
  return node == around;
}

std::vector<int> Expression::path(int node) const {
  std::vector<int> found;
  for (; node >= 0; node = nodes[static_cast<size_t>(node)].parent)
    found.push_back(node);
  std::ranges::reverse(found);
  return found;
}

int Expression::commonNode(int a, int b) const {
  while (a != b)
    (a > b ? a : b) = nodes[static_cast<size_t>(std::max(a, b))].parent;
  return a;
}

std::vector<int> Expression::children(int node) const {
  std::vector<int> found;
  for (size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].parent == node)
      found.push_back(static_cast<int>(n));
  return found;
}

Expression Expression::without(std::span<const int> loops) const {
  Expression out;
  std::vector<int> places; // by node: its place in `out`, or that of the node around it
  for (const Node &node : nodes) {
    const int parent = node.parent < 0 ? -1 : places[static_cast<size_t>(node.parent)];
    const bool stays = std::ranges::find(loops, node.loop) == loops.end();
    places.push_back(stays ? static_cast<int>(out.nodes.size()) : parent);
    if (stays)
      out.nodes.push_back({node.loop, parent});
  }
  return out;
}

Hash128 hash(const Expression &expression) {
  static_assert(sizeof(Expression::Node) == 2 * sizeof(int));
  return hash128(expression.nodes.data(), expression.nodes.size() * sizeof(Expression::Node));
}

Expression nested(std::span<const int> loops) { return around(loops, {}); }

Expression around(std::span<const int> loops, const Expression &inner) {
  Expression out;
  for (int loop : loops)
    out.nodes.push_back({loop, static_cast<int>(out.nodes.size()) - 1});
  const int last = static_cast<int>(out.nodes.size()) - 1;
  for (const Expression::Node &node : inner.nodes)
    out.nodes.push_back({node.loop, node.parent + last + 1});
  return out;
}

Expression inTurn(std::span<const Expression> parts) {
  Expression out;
  for (const Expression &part : parts) {
    const int first = static_cast<int>(out.nodes.size());
    for (const Expression::Node &node : part.nodes)
      out.nodes.push_back({node.loop, node.parent < 0 ? -1 : node.parent + first});
  }
  return out;
}

namespace {

class Canonical {
public:
  Canonical(const Expression &expression, const LoopSpace &space)
      : expression(expression), first(expression.nodes.size(), space.equations.size()) {
    const std::vector<int> places = standingNodes(expression, space);
    for (size_t e = places.size(); e-- > 0;)
      for (int node : expression.path(places[e]))
        first[static_cast<size_t>(node)] = e;
  }

  Expression run() {
    add(-1, -1);
    return std::move(out);
  }

private:
  void add(int node, int parent) {
    std::vector<int> children = expression.children(node);
    std::ranges::stable_sort(children, {}, [&](int n) {
      return std::pair(first[static_cast<size_t>(n)],
                       expression.nodes[static_cast<size_t>(n)].loop);
    });
    for (int child : children) {
      const int place = static_cast<int>(out.nodes.size());
      out.nodes.push_back({expression.nodes[static_cast<size_t>(child)].loop, parent});
      add(child, place);
    }
  }

  const Expression &expression;
  std::vector<size_t> first; // by node: the first equation inside it
  Expression out;
};

} // namespace

Expression canonical(const Expression &expression, const LoopSpace &space) {
  return Canonical(expression, space).run();
}

namespace {

bool isReduced(const LoopSpace &space, int loop) {
  for (size_t e = 0; e < space.equations.size(); ++e)
    if (space.reduces(loop, static_cast<int>(e)))
      return true;
  return false;
}

/// No equation reduces it, and all loops that some equation reduces stand on its path, on one side of it.
bool isBoundTo(const Expression &expression, const LoopSpace &space, int loop) {
  int outside = 0, inside = 0, beside = 0;
  for (size_t own = 0; own < expression.nodes.size(); ++own) {
    if (expression.nodes[own].loop != loop)
      continue;
    for (size_t n = 0; n < expression.nodes.size(); ++n) {
      if (!isReduced(space, expression.nodes[n].loop))
        continue;
      if (expression.isInside(static_cast<int>(n), static_cast<int>(own)))
        ++inside;
      else if (expression.isInside(static_cast<int>(own), static_cast<int>(n)))
        ++outside;
      else
        ++beside;
    }
  }
  return !isReduced(space, loop) && beside == 0 && (outside == 0 || inside == 0);
}

} // namespace

BoundExpression bindBlocks(const Expression &expression, const LoopSpace &space) {
  BoundExpression out;
  for (size_t l = 0; l < space.loops.size(); ++l) {
    const int loop = static_cast<int>(l);
    if (std::ranges::count(space.rows, loop) || isBoundTo(expression, space, loop))
      out.blocks.push_back(loop);
  }
  out.inner = expression.without(out.blocks);
  return out;
}

bool holdsPartialSums(const BoundExpression &expression, const LoopSpace &space) {
  const Expression &inner = expression.inner;
  for (const InsideRead &read : space.reads)
    for (int d = 0; d < space.equations[static_cast<size_t>(read.maker)]->numSpatial; ++d)
      for (size_t n = 0; n < inner.nodes.size(); ++n) {
        if (inner.nodes[n].loop !=
            space.loopOf[static_cast<size_t>(read.maker)][static_cast<size_t>(d)])
          continue;
        for (int outer : inner.path(static_cast<int>(n)))
          if (space.reduces(inner.nodes[static_cast<size_t>(outer)].loop, read.maker))
            return true;
      }
  return false;
}

} // namespace fusec::tiling

#include "Tiling/space/Expression.h"

#include <algorithm>

namespace fusec::tiling {

bool isMadeFor(const Expression &expression, const LoopSpace &space, int maker, int makerNode,
               int readerNode) {
  const std::vector<int> shared =
      expression.path(expression.commonNode(std::max(makerNode, -1), std::max(readerNode, -1)));
  return std::ranges::none_of(shared, [&](int node) {
    return space.reduces(expression.nodes[static_cast<size_t>(node)].loop, maker);
  });
}

namespace {

class StandingNodes {
public:
  StandingNodes(const Expression &expression, const LoopSpace &space)
      : expression(expression), space(space), isPrologue(space.equations.size(), true),
        places(space.equations.size(), -2) {}

  std::vector<int> run() {
    for (size_t e = 0; e < places.size(); ++e) {
      isPrologue[e] = space.equations[e]->kind == EquationKind::Map;
      for (const InsideRead &read : space.reads)
        if (read.reader == static_cast<int>(e) && !isPrologue[static_cast<size_t>(read.maker)])
          isPrologue[e] = false;
      if (isPrologue[e])
        continue;
      places[e] = behindMakers(static_cast<int>(e));
      if (space.equations[e]->kind == EquationKind::Map)
        places[e] = besideMaker(static_cast<int>(e), places[e]);
    }
    for (size_t e = places.size(); e-- > 0;)
      if (isPrologue[e])
        places[e] = atReaders(static_cast<int>(e));
    return std::move(places);
  }

private:
  bool isAnywhere(int loop) const {
    return std::ranges::any_of(expression.nodes,
                               [&](const Expression::Node &node) { return node.loop == loop; });
  }

  /// Nodes whose paths have the equation's loops, and end with one of them.
  std::vector<int> candidates(int e) const {
    std::vector<int> wanted;
    for (int loop : space.loopOf[static_cast<size_t>(e)])
      if (loop >= 0 && isAnywhere(loop))
        wanted.push_back(loop);
    if (wanted.empty())
      return {-1};
    std::vector<int> found;
    for (size_t n = 0; n < expression.nodes.size(); ++n) {
      if (!std::ranges::count(wanted, expression.nodes[n].loop))
        continue;
      const std::vector<int> path = expression.path(static_cast<int>(n));
      const auto met = std::ranges::count_if(path, [&](int node) {
        return std::ranges::count(wanted, expression.nodes[static_cast<size_t>(node)].loop) > 0;
      });
      if (met == static_cast<std::ptrdiff_t>(wanted.size()))
        found.push_back(static_cast<int>(n));
    }
    return found;
  }

  int behindMakers(int e) const {
    const std::vector<int> possible = candidates(e);
    for (int node : possible)
      if (std::ranges::all_of(space.reads, [&](const InsideRead &read) {
            const int maker = places[static_cast<size_t>(read.maker)];
            return read.reader != e || isPrologue[static_cast<size_t>(read.maker)] ||
                   (isMadeFor(expression, space, read.maker, maker, node) &&
                    (node >= maker || expression.isInside(maker, node)));
          }))
        return node;
    return possible.empty() ? -2 : possible[0];
  }

  /// Where what a map reads is made anew in loops inside `node` that the map does not have, it runs there too: readers
  /// in these loops find its values.
  int besideMaker(int e, int node) const {
    for (const InsideRead &read : space.reads) {
      if (read.reader != e || isPrologue[static_cast<size_t>(read.maker)])
        continue;
      int complete = places[static_cast<size_t>(read.maker)];
      for (int at = complete; at >= 0; at = expression.nodes[static_cast<size_t>(at)].parent)
        if (space.reduces(expression.nodes[static_cast<size_t>(at)].loop, read.maker))
          complete = expression.nodes[static_cast<size_t>(at)].parent;
      if (complete > node && expression.isInside(complete, node))
        node = complete;
    }
    return node;
  }

  int atReaders(int e) const {
    const std::vector<int> possible = candidates(e);
    int best = possible.empty() ? -2 : possible[0];
    for (int node : possible)
      if (std::ranges::all_of(space.reads, [&](const InsideRead &read) {
            const int reader = places[static_cast<size_t>(read.reader)];
            return read.maker != e || node <= reader || expression.isInside(node, reader);
          }))
        best = node;
    return best;
  }

  const Expression &expression;
  const LoopSpace &space;
  std::vector<bool> isPrologue; // a map of inputs, and of other such maps
  std::vector<int> places;
};

} // namespace

std::vector<int> standingNodes(const Expression &expression, const LoopSpace &space) {
  return StandingNodes(expression, space).run();
}

} // namespace fusec::tiling

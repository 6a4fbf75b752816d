#include "Tiling/space/Place.h"

#include "Tiling/space/Lives.h"

#include <algorithm>

namespace fusec::tiling {

std::vector<int> Placement::repeats(const PlacedStatement &statement,
                                    const SpaceOperands &operands) const {
  std::vector<int> found;
  const SpaceOperand &operand = operands.operands[static_cast<size_t>(statement.operand)];
  for (int loop : around(statement.node))
    if (!operand.movesAlong(loop))
      found.push_back(loop);
  return found;
}

std::span<const int> Placement::around(int node) const {
  return node < 0 ? std::span<const int>() : loopsAround[static_cast<size_t>(node)];
}

namespace {

class Placer {
public:
  Placer(const SpaceOperands &operands, const BoundExpression &expression,
         std::span<const double> trips, const PlaceRules &rules)
      : operands(operands), space(operands.space), blocks(expression.blocks), rules(rules) {
    std::vector<int> dropped;
    if (rules.dropLoopsThatRunOnce)
      for (size_t l = 0; l < trips.size(); ++l)
        if (trips[l] == 1)
          dropped.push_back(static_cast<int>(l));
    out.tree = expression.whole().without(dropped);
    out.nodeOf = standingNodes(out.tree, space);
    for (const Expression::Node &node : out.tree.nodes) {
      std::vector<int> loops;
      if (node.parent >= 0)
        loops = out.loopsAround[static_cast<size_t>(node.parent)];
      loops.push_back(node.loop);
      out.loopsAround.push_back(std::move(loops));
    }
  }

  Placement run() {
    for (size_t e = 0; e < space.equations.size(); ++e)
      if (out.nodeOf[e] == -2) {
        out.whyNot = "no path has all loops of " + space.equations[e]->name;
        return std::move(out);
      }
    orderItems();
    checkReads();
    if (out.whyNot.empty()) {
      addStatements();
      fillItems();
      addLives(out, operands);
    }
    return std::move(out);
  }

private:
  size_t indexOf(int node) const {
    return node < 0 ? out.tree.nodes.size() : static_cast<size_t>(node);
  }
  const std::string &name(int e) const { return space.equations[static_cast<size_t>(e)]->name; }

  /// The part of a node in which an equation stands: a loop of the node, or the equation itself (-1 - e).
  int partOf(int e, int node) const {
    int at = out.nodeOf[static_cast<size_t>(e)];
    if (at == node)
      return -1 - e;
    while (out.tree.nodes[static_cast<size_t>(at)].parent != node)
      at = out.tree.nodes[static_cast<size_t>(at)].parent;
    return at;
  }
  std::vector<int> around(int e) const {
    std::vector<int> nodes = out.tree.path(out.nodeOf[static_cast<size_t>(e)]);
    nodes.insert(nodes.begin(), -1);
    return nodes;
  }

  /// Equations are given in an order in which they can run.
  void orderItems() {
    parts.resize(out.tree.nodes.size() + 1);
    out.positions.resize(space.equations.size());
    for (size_t e = 0; e < space.equations.size(); ++e)
      for (int node : around(static_cast<int>(e))) {
        std::vector<int> &own = parts[indexOf(node)];
        const int part = partOf(static_cast<int>(e), node);
        const auto place = std::ranges::find(own, part);
        out.positions[e].push_back(static_cast<int>(place - own.begin()));
        if (place == own.end())
          own.push_back(part);
      }
  }

  /// Sets whyNot to the first reason.
  void checkReads() {
    for (const InsideRead &read : space.reads) {
      const int maker = out.nodeOf[static_cast<size_t>(read.maker)];
      const int reader = out.nodeOf[static_cast<size_t>(read.reader)];
      for (int node : out.tree.path(out.tree.commonNode(maker, reader)))
        if (out.whyNot.empty())
          out.whyNot = whyNotTogether(read, out.tree.nodes[static_cast<size_t>(node)].loop);
      if (out.whyNot.empty() && out.positions[static_cast<size_t>(read.maker)] >
                                    out.positions[static_cast<size_t>(read.reader)])
        out.whyNot = name(read.reader) + " would run before " + name(read.maker);
    }
  }

  std::string whyNotTogether(const InsideRead &read, int loop) const {
    const std::string &along = space.loops[static_cast<size_t>(loop)].name;
    const std::vector<int> &axes = space.loopOf[static_cast<size_t>(read.maker)];
    if (space.reduces(loop, read.maker))
      return name(read.reader) + " would use " + name(read.maker) + " before its sum along " +
             along + " is complete";
    for (size_t d = 0; d < std::min(read.own.size(), axes.size()); ++d)
      if (!read.own[d] && axes[d] == loop)
        return name(read.reader) + " needs " + name(read.maker) +
               " at other points than its own along " + along;
    return "";
  }

  void addStatements() {
    for (size_t e = 0; e < space.equations.size(); ++e) {
      for (bool made : {false, true}) {
        if (made)
          out.statements.push_back({StatementKind::Compute, static_cast<int>(e),
                                    static_cast<int>(e), -1, out.nodeOf[e]});
        for (size_t o = 0; o < operands.operands.size(); ++o) {
          const SpaceOperand &operand = operands.operands[o];
          if (operand.equation == static_cast<int>(e) && operand.isMade == made &&
              (!made || operand.isStored))
            addMove(static_cast<int>(o));
        }
      }
    }
  }

  void addMove(int index) {
    const SpaceOperand &operand = operands.operands[static_cast<size_t>(index)];
    int place = -1;
    for (int node : out.tree.path(out.nodeOf[static_cast<size_t>(operand.equation)])) {
      const int loop = out.tree.nodes[static_cast<size_t>(node)].loop;
      if (operand.isMade && rules.holdSums && space.reduces(loop, operand.equation))
        break;
      if (operand.movesAlong(loop) || (rules.stayInBlocks && std::ranges::count(blocks, loop) > 0))
        place = node;
    }
    if (!operand.isMade)
      for (PlacedStatement &other : out.statements)
        if (other.kind == StatementKind::Load && other.node == place) {
          const SpaceOperand &known = operands.operands[static_cast<size_t>(other.operand)];
          if (known.tensor == operand.tensor && known.loops == operand.loops) {
            other.lastEquation = operand.equation;
            return;
          }
        }
    out.statements.push_back({operand.isMade ? StatementKind::Store : StatementKind::Load,
                              operand.equation, operand.equation, index, place});
  }

  void fillItems() {
    out.items.resize(parts.size());
    for (int node = -1; node < static_cast<int>(out.tree.nodes.size()); ++node)
      for (int part : parts[indexOf(node)]) {
        auto addAll = [&](StatementKind kind) {
          for (size_t s = 0; s < out.statements.size(); ++s)
            if (out.statements[s].kind == kind && out.statements[s].node == node &&
                partOf(out.statements[s].equation, node) == part)
              out.items[indexOf(node)].push_back({-1, static_cast<int>(s)});
        };
        addAll(StatementKind::Load);
        if (part >= 0)
          out.items[indexOf(node)].push_back({part, -1});
        else
          addAll(StatementKind::Compute);
        addAll(StatementKind::Store);
      }
  }

  const SpaceOperands &operands;
  const LoopSpace &space;
  const std::vector<int> &blocks;
  const PlaceRules &rules;
  std::vector<std::vector<int>>
      parts; // by node, outside of all at the end: in the order in which they run
  Placement out;
};

} // namespace

Placement place(const SpaceOperands &operands, const BoundExpression &expression,
                std::span<const double> trips, const PlaceRules &rules) {
  return Placer(operands, expression, trips, rules).run();
}

} // namespace fusec::tiling

#include "Tiling/space/Lives.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

class LifeFinder {
public:
  LifeFinder(Placement &placement, const SpaceOperands &operands)
      : placement(placement), operands(operands), space(operands.space) {}

  void run() {
    for (const PlacedStatement &statement : placement.statements)
      if (statement.kind == StatementKind::Load)
        add(statement.operand, statement.node, statement.equation, statement.lastEquation);
    for (size_t o = 0; o < operands.operands.size(); ++o)
      if (operands.operands[o].isMade && !isInPlace(operands.operands[o]))
        addMade(static_cast<int>(o));
  }

private:
  const SpaceOperand &operand(int index) const {
    return operands.operands[static_cast<size_t>(index)];
  }
  const std::vector<int> &positions(int e) const {
    return placement.positions[static_cast<size_t>(e)];
  }

  bool isInPlace(const SpaceOperand &own) const {
    if (space.equations[static_cast<size_t>(own.equation)]->kind != EquationKind::Map)
      return false;
    return std::ranges::any_of(space.reads, [&](const InsideRead &read) {
      if (read.reader != own.equation || std::ranges::count(read.own, false) > 0)
        return false;
      const auto source = std::ranges::find_if(operands.operands, [&](const SpaceOperand &other) {
        return other.isMade && other.tensor == read.tensor;
      });
      return source->loops == own.loops && source->elementBytes >= own.elementBytes &&
             !source->isStored &&
             std::ranges::count(space.reads, read.tensor, &InsideRead::tensor) == 1;
    });
  }

  /// A value lives in the innermost node that all equations around it are in, from its maker to its last reader; where
  /// it is stored, in the node of the Store.
  void addMade(int index) {
    const int maker = operand(index).equation;
    int node = placement.nodeOf[static_cast<size_t>(maker)], last = maker;
    auto take = [&](int reader, int at) {
      node = placement.tree.commonNode(node, at);
      if (positions(reader) > positions(last))
        last = reader;
    };
    std::vector<TensorId> names = {operand(index).tensor}; // of the value, with those in its place
    for (size_t n = 0; n < names.size(); ++n)
      for (const InsideRead &read : space.reads)
        if (read.tensor == names[n]) {
          take(read.reader, placement.nodeOf[static_cast<size_t>(read.reader)]);
          for (const SpaceOperand &other : operands.operands)
            if (other.equation == read.reader && other.isMade && isInPlace(other))
              names.push_back(other.tensor);
        }
    for (const PlacedStatement &statement : placement.statements)
      if (statement.kind == StatementKind::Store &&
          std::ranges::count(names, operand(statement.operand).tensor) > 0)
        take(statement.equation, statement.node);
    add(index, node, maker, last);
  }

  /// The tiles that the first equation makes while the node runs once, for the equations in it up to the last one.
  void add(int index, int node, int first, int last) {
    TileLife life{index, {}, {}};
    const size_t depth = placement.around(node).size();
    for (int loop : placement.around(placement.nodeOf[static_cast<size_t>(first)]).subspan(depth))
      if (operand(index).movesAlong(loop))
        life.tileLoops.push_back(loop);
    for (size_t e = 0; e < space.equations.size(); ++e) {
      if (!placement.tree.isInside(placement.nodeOf[e], node))
        continue;
      const int at = positions(static_cast<int>(e))[depth];
      if (at >= positions(first)[depth] && at <= positions(last)[depth])
        life.equations.push_back(static_cast<int>(e));
    }
    placement.lives.push_back(std::move(life));
  }

  Placement &placement;
  const SpaceOperands &operands;
  const LoopSpace &space;
};

} // namespace

void addLives(Placement &placement, const SpaceOperands &operands) {
  LifeFinder(placement, operands).run();
}

} // namespace fusec::tiling

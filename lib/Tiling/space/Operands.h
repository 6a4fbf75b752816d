#pragma once
// What the equations of a loop space read and write, tile by tile.
#include "Expr/LoopSpace.h"

#include <span>
#include <vector>

namespace fusec::tiling {

/// A loop along which an index moves, by so many elements a step.
struct IndexStep {
  int loop = 0;
  double elements = 1;
};

/// A tensor that an equation reads and that comes from memory, or one that it makes.
struct SpaceOperand {
  int equation = 0;
  TensorId tensor = -1;
  bool isMade = false;
  bool isStored = false; // what is made and not stored is for the space's other equations alone
  double elementBytes = 0;
  std::vector<std::vector<IndexStep>> dims; // of the tensor
  std::vector<int> loops;                   // that some dimension moves along, ascending
  /// The loops among these that cut it: the one dimension that moves along the loop moves along no other, point by
  /// point. All tiles of the loop together are the dimension, and no two have an element in common.
  std::vector<int> cuts;
  bool isFirst = true; // of those of its tensor

  bool movesAlong(int loop) const;
  bool isCutBy(int loop) const;
  /// The elements of a tile with those sizes of the loops.
  double elements(std::span<const double> tiles) const;
};

/// The operands of a group of equations. Several reads of a tensor that move alike are one.
struct SpaceOperands {
  LoopSpace space;
  std::vector<SpaceOperand>
      operands; // by equation; what it reads, in the order of its body, then what it makes
  std::vector<double> flops; // by equation: of a point
};

/// `program` has the tensors and the symbols of the equations; those that it counts among its outputs are stored.
SpaceOperands spaceOperands(LoopSpace space, const ExprProgram &program);

/// The extents of the loops where the symbols have their least, usual and greatest values.
struct SpaceExtents {
  std::vector<double> least, usual, greatest;
};
SpaceExtents spaceExtents(const LoopSpace &space, const std::vector<Symbol> &symbols);

} // namespace fusec::tiling

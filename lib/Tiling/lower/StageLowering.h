#pragma once
#include "Tiling/lower/EquationLowering.h"

namespace fusec::lowering {

/// Copies tiles of operands into a block's own memory, one element a lane at a time. Elements beyond the tensor (cut
/// tiles, padding) become the read's else-value or 0.
class StageLowering {
public:
  explicit StageLowering(LoweringParts &parts) : parts(parts) {}
  void stage(OperandIndex operand, Stmts &result);

private:
  using Digits = std::vector<NodeId>;
  /// The operand at hand.
  struct Tile {
    const Operand &operand;
    const Equation &equation;
    NodeId read;
    const Tensor &tensor;
    std::vector<int64_t> extents; // of the buffer, one a digit
    std::vector<size_t> order;    // of the digits, fastest first
    StagedOperand &stage;
  };
  void addBuffer(const Tile &tile);
  NodeId lowestIndex(int equation, NodeId index);
  void checkCovers(const Tile &tile);
  bool isWhole(const Tile &tile, size_t digit) const;
  NodeId copied(const Tile &tile, size_t digit);
  Stmts copyElement(const Tile &tile, const Digits &digits);
  NodeId boxElement(const Tile &tile, const Digits &digits);
  NodeId axesElement(const Tile &tile, const Digits &digits, NodeId &inside);
  void copyByDigits(const Tile &tile, Stmts &result);
  void copyFlat(const Tile &tile, Stmts &result);

  LoweringParts &parts;
  const BoundSchedule &bound = parts.bound;
  KernelWriter &writer = parts.writer;
  LoopState &loops = parts.loops;
  ReadLowering &reads = parts.reads;
  Body &body = parts.writer.body;
};

} // namespace fusec::lowering

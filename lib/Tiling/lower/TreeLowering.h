#pragma once
#include "Tiling/lower/EquationLowering.h"
#include "Tiling/lower/StageLowering.h"

namespace fusec::lowering {

/// Loops and statements of a schedule's tree, as statements of the kernel.
class TreeLowering {
public:
  explicit TreeLowering(LoweringParts &parts);
  /// The statements of a block, below its loops over blocks.
  void lowerBlock(std::span<const TreeNode> nodes, Stmts &result);

private:
  void lowerChildren(std::span<const TreeNode> nodes, Stmts &result);
  void lowerAll(std::span<const TreeNode> nodes, Stmts &result);
  void lowerLoop(const LoopNode &node, Stmts &result);
  void lowerAroundCombine(const LoopNode &lanes, Stmts &result);
  void nameKernel(const LoopNode &node, Stmt &loop);
  void lowerLeaf(const LeafNode &leaf, Stmts &result);
  void lowerCompute(const LeafNode &compute, Stmts &result);
  std::vector<AxisId> axesCutHere() const;
  bool stepsOverTiles(const LoopNode &loop) const;
  bool endsInOneCutRound(const LoopNode &loop) const;
  void lowerWholeAndCutRounds(const LoopNode &node, Stmts &result);
  bool inCutTile() const;
  void lowerBothVersions(std::span<const TreeNode> nodes, const std::vector<AxisId> &cut,
                         Stmts &result);
  void lowerCut(std::span<const TreeNode> nodes, const std::vector<AxisId> &cut, Stmts &result);
  void lowerPieces(std::span<const TreeNode> nodes, std::span<const AxisId> cut, Stmts &result);

  LoweringParts &parts;
  LoopState &loops = parts.loops;
  StageLowering stages{parts};
  std::vector<std::unique_ptr<EquationLowering>> equations;
  std::set<AxisId>
      checkedByLanes; // of loops.checked: those without a second version of the statements
};

} // namespace fusec::lowering

#pragma once
#include "Tiling/lower/TreeLowering.h"
#include "Tiling/schedule/PhaseSignals.h"

namespace fusec::lowering {

/// The phases of a kernel: the grid of each, parts side by side, steps that all blocks take together, and what blocks
/// of phases side by side tell each other (schedule/PhaseSignals.h).
class PhaseLowering {
public:
  explicit PhaseLowering(LoweringParts &parts) : parts(parts), tree(parts) {}
  void lowerAll();

private:
  void addCounters();
  Phase copyOfBase(const Equation &scatter);
  void lowerGridScan(const LoopNode &loop);
  /// `number`: of the schedule's phases; a step's phases have none.
  Phase lowerPhase(std::span<const TreeNode> level, std::optional<size_t> number = std::nullopt);
  Phase lowerParts(std::span<const TreeNode> nodes, std::optional<size_t> number);
  Stmts lowerPart(std::span<const TreeNode> nodes, std::optional<size_t> number, size_t part);
  void enterPart(std::span<const LoopNode *const> chain, NodeId block);
  Stmts chooseBy(NodeId block, std::span<const DimExpr> ends, std::span<Stmts> statements);
  void waitForTiles(const tiling::SignalWait &wait, Stmts &result);
  void signalTile(size_t set, Stmts &result);

  LoweringParts &parts;
  TreeLowering tree;
  const BoundSchedule &bound = parts.bound;
  KernelWriter &writer = parts.writer;
  Body &body = parts.writer.body;
  tiling::PhaseSignals signals;
};

} // namespace fusec::lowering

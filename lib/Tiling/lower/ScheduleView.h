#pragma once
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::lowering {

/// Nodes of a tree from the root to a loop or a leaf, that one included.
using TreePath = std::vector<const TreeNode *>;

/// What is lowered: a schedule with its program, and its tree with the stores that edge levels ask for.
class ScheduleView {
public:
  /// Both must outlive the view.
  ScheduleView(const tiling::BoundSchedule &bound, const std::vector<Symbol> &symbols);

  const tiling::BoundSchedule &bound;
  const ExprProgram &program;
  const Schedule &schedule;
  const std::vector<Symbol> &symbols;
  const std::vector<const Equation *> &equations;
  const Equation *const scan;
  const bool inGridScan; // all blocks take the scan's steps together (schedule/GridScan.h)
  std::vector<TreeNode> tree;

  const Equation &equation(int number) const { return bound.equation(number); }
  const Tensor &tensor(TensorId id) const { return program.tensors[static_cast<size_t>(id)]; }
  const DimExpr &extent(AxisId axis) const { return schedule.axes[axis].extent; }
  /// What the axis is in the equation; null if the equation does not have it.
  const AxisUse *use(AxisId axis, int equation) const { return schedule.axes[axis].in(equation); }
  /// Elements of the axis below these loops; 0 if they are no constant.
  int64_t tile(AxisId axis, std::span<const TreeNode *const> loops) const;

  std::optional<TreePath> findLeaf(LeafKind kind, int target) const;
  /// Paths to the Compute statements of the equations that read the tensor.
  std::vector<TreePath> findReaders(TensorId tensor) const;

  /// The carry of the scan whose state of the next step (`next`), or of this one, the tensor is; null if it is none.
  const ScanCarry *carryOf(TensorId tensor, bool next) const;
  /// True if device memory holds the value too: it is stacked, or the next step of a grid scan reads it there.
  bool outlivesStep(TensorId tensor) const;
  /// True for a map whose value goes to several places: it waits in a register, to be computed once.
  bool isStoredTwice(int equation) const;

private:
  void addStore(TensorId edge);
};

} // namespace fusec::lowering

#pragma once
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::lowering {

using tiling::Loops;

/// The schedule with the stores that edge levels ask for: an edge above registers needs the values in memory before the
/// first statement that reads them. If the tree has no Store of the reduction that makes them, puts one in front of
/// that statement, under loops like its own.
Schedule withStores(Schedule schedule, const tiling::ScheduledProgram &program);

/// What is lowered: a schedule with its stores, its program and what is known of its symbols.
class ScheduleView {
public:
  /// Both must outlive the view.
  ScheduleView(const tiling::BoundSchedule &bound, const std::vector<Symbol> &symbols)
      : bound(bound), program(bound.program()), schedule(bound.schedule()), symbols(symbols),
        equations(bound.equations()), scan(bound.scan()), inGridScan(bound.gridScan() != nullptr) {}

  const tiling::BoundSchedule &bound;
  const ExprProgram &program;
  const Schedule &schedule;
  const std::vector<Symbol> &symbols;
  const std::vector<const Equation *> &equations;
  const Equation *const scan;
  const bool inGridScan; // all blocks take the scan's steps together (schedule/GridScan.h)

  const Equation &equation(int number) const { return bound.equation(number); }
  const Tensor &tensor(TensorId id) const { return program.tensors[static_cast<size_t>(id)]; }
  const DimExpr &extent(AxisId axis) const { return schedule.axes[axis].extent; }
  /// What the axis is in the equation; null if the equation does not have it.
  const AxisUse *use(AxisId axis, int equation) const { return bound.use(axis, equation); }
  /// Elements of the axis below these loops; 0 if they are no constant.
  int64_t tile(AxisId axis, std::span<const LoopNode *const> loops) const;

  /// True if device memory holds the value too: it is stacked, or the next step of a grid scan reads it there.
  bool outlivesStep(TensorId tensor) const;
  /// True for a map whose value goes to several places: it waits in a register, to be computed once.
  bool isStoredTwice(int equation) const;
};

} // namespace fusec::lowering

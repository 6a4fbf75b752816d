#pragma once
// Pieces from which the generators of candidate schedules are put together. Internal to Tiling.
#include "Target/Target.h"
#include "Tiling/candidates/SearchChoices.h"
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Columns of a packed panel of weights, in one row: one layout for AVX2 and AVX-512.
constexpr int64_t kPanel = 16;

/// One read of the tiled equation.
struct ReadInfo {
  int ordinal;
  NodeId node;
  TensorId tensor;
  int64_t elementBytes;
  bool guarded;  // ReadIf
  bool constant; // of a Constant tensor
  uint64_t axes; // axis positions it depends on
  std::optional<FlatAccess> access;
  bool dependsOn(const std::vector<int> &group) const;
  /// Element stride of the group's fastest axis; nullopt when unknown or symbolic.
  std::optional<int64_t> stride(const std::vector<int> &group) const;
};

/// The program as the generators see it: one equation (or a reduction and the map that finishes it), its axes
/// merged where all addresses allow, axes of extent 1 dropped.
struct View {
  const ScheduledProgram *program;
  const Target *target;
  int first = 0;                           // the equation that is tiled
  int finish = -1;                         // the map after a reduction, or -1
  std::vector<std::vector<int>> spatial;   // merged groups of axis positions, outermost first
  std::vector<std::vector<int>> reduction; // of `first`
  std::vector<ReadInfo> reads;             // its own

  const Equation &equation() const { return *program->equations[first]; }
  const Tensor &tensor(TensorId t) const { return program->expr.tensors[t]; }
  DimExpr extent(const std::vector<int> &group) const;
  /// Extent at the symbols' opt values.
  int64_t opt(const std::vector<int> &group) const;
};
/// Groups of `first` (and `finish`): see View. The axis positions in `without` are in no group: loops of the caller's
/// run over them.
View makeView(const ScheduledProgram &program, const Target &target, int first, int finish,
              const std::vector<int> &without = {});

/// Schedule under construction.
class ScheduleBuilder {
public:
  /// Begins a part of a schedule, whose loops are to be spliced into it.
  ScheduleBuilder(const View &view, int units, int lanes);
  ScheduleBuilder(const View &view, GeneratorName name, int units, int lanes);
  Schedule schedule;
  const View &view;

  AxisId addSpatial(const std::string &name, std::vector<std::vector<int>> groups);
  AxisId addReduction(const std::string &name, std::vector<std::vector<int>> groups);

  /// Axis positions of the tiled equation that `axis` stands for.
  const std::vector<int> &positionsOf(AxisId axis) const {
    return schedule.axes[axis].in(view.first)->positions;
  }

  static LoopNode loop(LoopKind kind, AxisId axis, int64_t step) { return {kind, axis, step}; }
  /// A statement about an equation.
  static LeafNode leaf(LeafKind kind, int equation, int rank = 0) {
    return {.kind = kind, .equation = equation, .rank = rank};
  }
  /// loops[0] outermost around `children`.
  static TreeNode nest(std::vector<LoopNode> loops, std::vector<TreeNode> children);
  /// Loops of a unit's lanes along an axis, each with so many elements side by side.
  std::vector<LoopNode> lanesAlong(AxisId axis, int64_t neighbours) const;
  /// Leaf that ends the pattern: Compute of the finishing map, else Store of the reduction.
  LeafNode finishLeaf() const;
  /// Level entries of the pattern's internal edges (Register).
  void registerEdges();
  /// Adds a Shared operand over the given axes and returns its index.
  OperandIndex stage(const ReadInfo &read, std::vector<LayoutDigit> digits, int64_t pad);
};

/// True if neighbouring axes p and p+1 can be walked as one in every read of the equation.
bool mergeable(const EquationFacts &facts, int p);
int64_t roundUp(int64_t value, int64_t multiple);

} // namespace fusec::tiling

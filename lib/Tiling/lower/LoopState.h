#pragma once
#include "Tiling/lower/BufferTable.h"

#include <set>

namespace fusec::lowering {

/// A loop around the current statement.
struct PathLoop {
  const LoopNode *node;
  VarId var = -1;
  NodeId value = kNoNode; // a part's block number, which has no variable of its own
};

/// Selects the axes of an equation that a test of bounds is about.
enum class Bounds : uint8_t { Spatial, Reduced, All };

/// Elements along axes whose loops are not around the statement (tiling::namedElement).
using NamedElements = std::map<AxisId, NodeId>;

/// Where the lowering stands in the tree: the loops around the current statement, and the values of axes and addresses
/// that follow from them.
class LoopState {
public:
  LoopState(const BoundSchedule &bound, KernelWriter &writer) : bound(bound), writer(writer) {}

  std::vector<PathLoop> path; // outermost first
  std::set<AxisId> checked;   // axes that may run past their extent
  /// Values of axes that are no sum of loops, while an element is copied or stored by all threads together.
  std::map<AxisId, NodeId> overrides;
  /// Reads past a spatial extent are moved to the last element, since what a reduction makes of them is not stored.
  bool clampSpatial = false;

  Loops nodes() const;
  NodeId value(const PathLoop &loop);
  /// Sum of step * variable over the loops of the axis.
  NodeId axisValue(AxisId axis);
  /// Part of that sum: the loops inside the outermost `depth` ones.
  NodeId axisOffset(AxisId axis, size_t depth);
  /// Value of the axis for a read: not past the extent under `clampSpatial`, where no lanes run along it.
  NodeId clampedValue(AxisId axis);
  bool isClamped(AxisId axis) const;
  /// Value of an equation's axis: that of the schedule's axis, or a digit of one that is fused from several.
  NodeId equationAxis(int equation, int position);
  /// Elements of the axis below the outermost `depth` loops, or all; 0 if symbolic.
  int64_t tile(AxisId axis, size_t depth) const;
  int64_t tile(AxisId axis) const { return tile(axis, path.size()); }
  /// The most elements of the axis that a tile below all of them has; 0: no memory has room for as many.
  int64_t mostOfTile(AxisId axis) const;
  bool onLanes(AxisId axis) const;
  const DimExpr &extent(AxisId axis) const { return bound.schedule.axes[axis].extent; }
  /// Trip count of a loop below the current ones.
  NodeId trip(const LoopNode &node);

  /// True where no axis of these is past its extent; kNoNode if none can be.
  NodeId inBounds(int equation, Bounds bounds);
  /// Under `clampSpatial`, masks the lanes past a spatial extent; `axes`: bits of the equation's axes.
  NodeId laneMask(int equation, uint64_t axes) { return within(lanesPastEnd(equation, axes)); }
  /// The axes that such lanes run along.
  std::set<AxisId> lanesPastEnd(int equation, uint64_t axes) const;
  /// True where none of these axes is past its extent; kNoNode for no axes.
  NodeId within(const std::set<AxisId> &axes);

  /// Flat element of an output that belongs to the current point of the equation's spatial domain.
  NodeId outputIndex(int equation, size_t output);
  /// Element of the buffer that holds a tile of an internal tensor, for a statement of `equation` and the tensor's
  /// element at `indices`.
  NodeId tileIndex(const SharedTile &tile, int equation, const std::vector<NodeId> &indices);
  /// Element of an accumulator at the current point. Inside the Unroll loop over its parts, the iteration's part; else
  /// the first one, which holds the result once they are folded.
  std::vector<NodeId> registerIndex(const Accumulator &accumulator);
  std::vector<NodeId> partIndex(const Accumulator &accumulator, NodeId part,
                                const NamedElements &named = {});

private:
  const BoundSchedule &bound;
  KernelWriter &writer;
  Body &body = writer.body;
};

} // namespace fusec::lowering

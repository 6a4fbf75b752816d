#pragma once
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Least and greatest value, inclusive.
using Bounds = std::pair<NodeId, NodeId>;

/// Bounds of index expressions of one equation over what one block computes of it, by interval arithmetic over what the
/// loops over blocks leave open. Made as nodes of `out`, in which Axis k is the number of the k-th of these loops.
class BlockRanges {
public:
  /// `blocks`: the loops over blocks around the equation, which has this number in the schedule. `boxes`: of what is
  /// staged for it, boxes (StagedTile.h) that have room for any place where a tile of a fused axis may begin.
  BlockRanges(const BoundSchedule &bound, const Loops &blocks, int number, bool boxes, Body &out)
      : bound(bound), blocks(blocks), number(number), equation(bound.equation(number)),
        boxes(boxes), out(out) {}

  /// The bounds of a number whose digits are these indices, outermost first. nullopt if they are not understood, or no
  /// block loop matters to them.
  std::optional<Bounds> ofDigits(const std::vector<NodeId> &indices,
                                 const std::vector<DimExpr> &extents);

private:
  bool hasAxis(NodeId id) const;
  NodeId last(const DimExpr &extent) { return out.dim(extent - DimExpr(1)); }
  std::optional<Bounds> tileOf(AxisId axis);
  std::optional<Bounds> asWholeAxis(const std::vector<NodeId> &indices,
                                    const std::vector<DimExpr> &extents);
  Bounds axis(int position);
  std::optional<DimExpr> positive(NodeId id) const;
  std::optional<Bounds> bounds(NodeId id);

  const BoundSchedule &bound;
  const Loops &blocks;
  const int number;
  const Equation &equation;
  const bool boxes;
  Body &out;
};

} // namespace fusec::tiling

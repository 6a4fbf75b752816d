#include "Tiling/schedule/BlockRanges.h"

#include <algorithm>

namespace fusec::tiling {

std::optional<Bounds> BlockRanges::ofDigits(const std::vector<NodeId> &indices,
                                            const std::vector<DimExpr> &extents) {
  if (std::optional<Bounds> whole = asWholeAxis(indices, extents))
    return hasAxis(whole->first) ? whole : std::nullopt;
  Bounds sum{out.index(0), out.index(0)};
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Bounds> digit = bounds(indices[d]);
    if (!digit)
      return std::nullopt;
    for (auto [total, own] :
         {std::pair{&sum.first, digit->first}, std::pair{&sum.second, digit->second}})
      *total =
          out.binary(ScalarOp::Add, out.binary(ScalarOp::Mul, *total, out.dim(extents[d])), own);
  }
  return hasAxis(sum.first) || hasAxis(sum.second) ? std::optional(sum) : std::nullopt;
}

bool BlockRanges::hasAxis(NodeId id) const {
  const std::vector<NodeId> all = out.reachable({id});
  return std::any_of(all.begin(), all.end(), [&](NodeId n) { return out[n].op == ScalarOp::Axis; });
}

/// The tile that the block loop over a schedule's axis leaves to one block. It is whole even where the extent cuts it,
/// as staged tiles are.
std::optional<Bounds> BlockRanges::tileOf(AxisId axis) {
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (blocks[k]->axis != axis)
      continue;
    const int64_t step = blocks[k]->step;
    const NodeId first =
        out.binary(ScalarOp::Mul, out.axis(static_cast<int32_t>(k)), out.index(step));
    const NodeId end = out.binary(ScalarOp::Add, first, out.index(step - 1));
    return Bounds{first, end};
  }
  return std::nullopt;
}

/// The indices are all positions of one of the schedule's axes, in its order.
std::optional<Bounds> BlockRanges::asWholeAxis(const std::vector<NodeId> &indices,
                                               const std::vector<DimExpr> &extents) {
  std::vector<int> positions;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Scalar &index = equation.body[indices[d]];
    if (index.op != ScalarOp::Axis ||
        equation.axes[static_cast<size_t>(index.index)].extent != extents[d])
      return std::nullopt;
    positions.push_back(index.index);
  }
  const AxisId a = bound.axisOf(number, positions.front());
  const AxisUse *use = bound.use(a, number);
  return use && use->positions == positions ? tileOf(a) : std::nullopt;
}

Bounds BlockRanges::axis(int position) {
  const DimExpr &extent = equation.axes[static_cast<size_t>(position)].extent;
  const Bounds all{out.index(0), last(extent)};
  const AxisId a = bound.axisOf(number, position);
  const std::optional<Bounds> tile = tileOf(a);
  const AxisUse *use = bound.use(a, number);
  // Along an axis that is not the first one the tile may go over from one row to the next.
  if (!tile || !use || use->positions.front() != position)
    return all;
  DimExpr inner(1);
  for (size_t p = 1; p < use->positions.size(); ++p)
    inner = inner * equation.axes[static_cast<size_t>(use->positions[p])].extent;
  NodeId end = tile->second;
  if (boxes)
    end = out.binary(ScalarOp::Add, end, last(inner));
  return {out.binary(ScalarOp::FloorDiv, tile->first, out.dim(inner)),
          out.binary(ScalarOp::FloorDiv, end, out.dim(inner))};
}

/// A constant or a size above 0.
std::optional<DimExpr> BlockRanges::positive(NodeId id) const {
  const Scalar &s = equation.body[id];
  if (s.op == ScalarOp::Const && !isFloat(s.type) && s.imm > 0)
    return DimExpr(s.imm);
  return s.op == ScalarOp::Dim ? std::optional(s.dim) : std::nullopt;
}

std::optional<Bounds> BlockRanges::bounds(NodeId id) {
  const Scalar &s = equation.body[id];
  switch (s.op) {
  case ScalarOp::Axis: return axis(s.index);
  case ScalarOp::Const: return Bounds{out.index(s.imm), out.index(s.imm)};
  case ScalarOp::Dim: return Bounds{out.dim(s.dim), out.dim(s.dim)};
  case ScalarOp::Add:
  case ScalarOp::Sub:
  case ScalarOp::Min:
  case ScalarOp::Max: {
    const std::optional<Bounds> a = bounds(s.args[0]), b = bounds(s.args[1]);
    if (!a || !b)
      return std::nullopt;
    const bool turns = s.op == ScalarOp::Sub;
    return Bounds{out.binary(s.op, a->first, turns ? b->second : b->first),
                  out.binary(s.op, a->second, turns ? b->first : b->second)};
  }
  case ScalarOp::Mul:
  case ScalarOp::FloorDiv: {
    if (const Scalar &by = equation.body[s.args[1]];
        s.op == ScalarOp::Mul && by.op == ScalarOp::Const && by.imm < 0) {
      const std::optional<Bounds> a = bounds(s.args[0]);
      if (!a)
        return std::nullopt;
      return Bounds{out.binary(s.op, a->second, out.index(by.imm)),
                    out.binary(s.op, a->first, out.index(by.imm))};
    }
    std::optional<DimExpr> by = positive(s.args[1]);
    const bool swapped = !by && s.op == ScalarOp::Mul;
    if (swapped)
      by = positive(s.args[0]);
    const std::optional<Bounds> a = by ? bounds(s.args[swapped ? 1 : 0]) : std::nullopt;
    if (!a)
      return std::nullopt;
    return Bounds{out.binary(s.op, a->first, out.dim(*by)),
                  out.binary(s.op, a->second, out.dim(*by))};
  }
  case ScalarOp::FloorMod:
    if (const std::optional<DimExpr> by = positive(s.args[1]))
      return Bounds{out.index(0), last(*by)};
    return std::nullopt;
  default: return std::nullopt;
  }
}

} // namespace fusec::tiling

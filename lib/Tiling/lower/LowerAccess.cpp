// Axes and addresses of a lowering.
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::lowering {

DimExpr Lowering::extent(AxisId axis) const { return schedule.axes[axis].extent; }

/// Value of a schedule axis at the current place: sum of step * variable over its loops.
NodeId Lowering::axisValue(AxisId axis) {
  if (auto it = axisOverride.find(axis); it != axisOverride.end())
    return it->second;
  return axisOffset(axis, 0);
}

NodeId Lowering::axisOffset(AxisId axis, size_t fromDepth) {
  NodeId sum = body.index(0);
  for (size_t i = fromDepth; i < path.size(); ++i)
    if (path[i].axis == axis)
      sum = body.binary(ScalarOp::Add, sum,
                        body.binary(ScalarOp::Mul, loopValue(path[i]), body.index(path[i].step)));
  return sum;
}

NodeId Lowering::loopValue(const PathLoop &loop) {
  return loop.value == kNoNode ? body.axis(loop.var) : loop.value;
}

int64_t Lowering::tileAt(AxisId axis, size_t depth) const {
  DimExpr tile = extent(axis);
  for (size_t i = 0; i < depth; ++i)
    if (path[i].axis == axis)
      tile = DimExpr(path[i].step);
  return tile.isConst() ? tile.constValue() : 0;
}

bool Lowering::onLanes(AxisId axis) const {
  return std::any_of(path.begin(), path.end(),
                     [&](const PathLoop &l) { return l.axis == axis && l.kind == LoopKind::Lane; });
}

AxisId Lowering::scheduleAxis(int equation, int position) const {
  return tiling::axisOf(schedule, *equations[equation], equation, position);
}

/// Value of an equation's axis: the schedule axis itself, or its digit when that one is fused from several.
NodeId Lowering::equationAxis(int equation, int position) {
  AxisId a = scheduleAxis(equation, position);
  if (a < 0)
    return body.index(0);
  const AxisUse &use = *schedule.axes[a].in(equation);
  NodeId value = axisValue(a);
  if (clampSpatial && !use.reduction && checks[a] == Check::Needed && !onLanes(a))
    value = body.binary(ScalarOp::Min, value, body.dim(extent(a) - DimExpr(1)));
  DimExpr inner(1);
  size_t place =
      std::find(use.positions.begin(), use.positions.end(), position) - use.positions.begin();
  for (size_t i = place + 1; i < use.positions.size(); ++i)
    inner = inner * equations[equation]->axes[use.positions[i]].extent;
  if (!inner.isConst(1))
    value = body.binary(ScalarOp::FloorDiv, value, body.dim(inner));
  if (place > 0)
    value = body.binary(ScalarOp::FloorMod, value,
                        body.dim(equations[equation]->axes[position].extent));
  return value;
}

int Lowering::producerOf(TensorId tensor) const { return tiling::producerOf(equations, tensor); }

MemLevel Lowering::levelOf(TensorId tensor) const { return tiling::levelOf(schedule, tensor); }

BufferId Lowering::globalBuffer(TensorId tensor) {
  auto it = globals.find(tensor);
  assert(it != globals.end() && "every global tensor has a parameter before the tree is lowered");
  return it->second;
}

NodeId Lowering::tensorIndex(const Shape &shape, const std::vector<NodeId> &indices) {
  std::vector<DimExpr> strides = stridesOf(shape);
  NodeId flat = body.index(0);
  for (size_t d = 0; d < indices.size(); ++d)
    flat = body.binary(ScalarOp::Add, flat,
                       body.binary(ScalarOp::Mul, indices[d], body.dim(strides[d])));
  return flat;
}

/// Flat address of a read that is affine in the equation's axes. kNoNode where it is not.
NodeId Lowering::flatIndex(int equation, NodeId read) {
  std::optional<FlatAccess> access = flatAccess(*equations[equation], read, pattern);
  return access ? addressOf(equation, *access) : kNoNode;
}

/// Axes fused in the schedule keep a single term where the address runs over them without a gap.
NodeId Lowering::addressOf(int equation, const FlatAccess &access) {
  const Equation &e = *equations[equation];
  NodeId flat = body.dim(access.constant);
  auto addTerm = [&](NodeId value, const DimExpr &stride) {
    if (!stride.isConst(0))
      flat = body.binary(ScalarOp::Add, flat, body.binary(ScalarOp::Mul, value, body.dim(stride)));
  };
  for (const FlatAccess::Rest &rest : access.rests)
    addTerm(importValue(equation, rest.value), rest.stride);
  std::vector<bool> done(e.axes.size(), false);
  for (size_t p = 0; p < e.axes.size(); ++p) {
    AxisId a = scheduleAxis(equation, static_cast<int>(p));
    if (done[p] || a < 0)
      continue;
    const AxisUse &use = *schedule.axes[a].in(equation);
    const std::vector<int> &members = use.positions;
    bool contiguous = true;
    for (size_t i = 0; i + 1 < members.size(); ++i)
      contiguous &= access.stride[members[i]] ==
                    access.stride[members[i + 1]] * e.axes[members[i + 1]].extent;
    for (int member : members)
      done[member] = true;
    if (contiguous) {
      NodeId value = axisValue(a);
      if (clampSpatial && !use.reduction && checks[a] == Check::Needed && !onLanes(a))
        value = body.binary(ScalarOp::Min, value, body.dim(extent(a) - DimExpr(1)));
      addTerm(value, access.stride[members.back()]);
      continue;
    }
    for (int member : members)
      addTerm(equationAxis(equation, member), access.stride[member]);
  }
  return flat;
}

/// Flat element of an output that belongs to the current point of the equation's spatial domain.
NodeId Lowering::outputIndex(int equation, size_t output) {
  const Equation &e = *equations[equation];
  const Shape &shape = pattern.tensors[e.outputs[output]].shape;
  std::vector<DimExpr> strides = stridesOf(shape);
  NodeId flat = body.index(0);
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const AxisUse *use = schedule.axes[a].in(equation);
    if (!use || use->reduction)
      continue;
    const std::vector<int> &positions = use->positions;
    bool contiguous = true;
    for (size_t i = 0; i + 1 < positions.size(); ++i)
      contiguous &=
          strides[positions[i]] == strides[positions[i + 1]] * e.axes[positions[i + 1]].extent;
    auto addTerm = [&](NodeId value, int position) {
      flat = body.binary(ScalarOp::Add, flat,
                         body.binary(ScalarOp::Mul, value, body.dim(strides[position])));
    };
    if (contiguous)
      addTerm(axisValue(static_cast<AxisId>(a)), positions.back());
    else
      for (int position : positions)
        addTerm(equationAxis(equation, position), position);
  }
  return flat;
}

/// The conjunction of "axis < extent" over the equation's axes that may run past their extent here.
NodeId Lowering::inBounds(int equation, bool spatial, bool reduction, bool lanesOnly) {
  NodeId predicate = kNoNode;
  for (size_t a = 0; a < schedule.axes.size(); ++a) {
    const ScheduleAxis &axis = schedule.axes[a];
    AxisId id = static_cast<AxisId>(a);
    const AxisUse *use = axis.in(equation);
    if (checks[id] != Check::Needed || !use || !(use->reduction ? reduction : spatial) ||
        (lanesOnly && !onLanes(id)))
      continue;
    predicate =
        body.logicalAnd(predicate, body.binary(ScalarOp::Lt, axisValue(id), body.dim(axis.extent)));
  }
  return predicate;
}

/// For a reduction's read past a spatial extent that lies on lanes: the test that masks those lanes.
NodeId Lowering::lanePredicate(int equation, uint64_t axes) {
  NodeId predicate = kNoNode;
  if (!clampSpatial)
    return predicate;
  for (size_t p = 0; p < equations[equation]->axes.size(); ++p) {
    AxisId a = scheduleAxis(equation, static_cast<int>(p));
    if (a < 0 || schedule.axes[a].in(equation)->reduction || !(axes >> p & 1) ||
        checks[a] != Check::Needed || !onLanes(a))
      continue;
    predicate =
        body.logicalAnd(predicate, body.binary(ScalarOp::Lt, axisValue(a), body.dim(extent(a))));
  }
  return predicate;
}

/// The indices of an accumulator's current element: inside the Unroll loop over its parts those of the iteration's
/// part, elsewhere those of the first part, which holds the result once they are folded.
std::vector<NodeId> Lowering::unrollIndices(int equation, const NamedElements &named) {
  NodeId part = body.index(0);
  for (const PathLoop &loop : path)
    if (loop.kind == LoopKind::Unroll && loop.axis == accumulators[equation].partsAxis)
      part = body.axis(loop.var);
  return partIndices(equation, part, named);
}

Lowering::NamedElements Lowering::namedElements(int producer, int reader, NodeId read) {
  NamedElements named;
  if (const std::optional<TreePath> loops = findLeaf(LeafKind::Compute, producer))
    for (auto [axis, ordinal] : accumulators[producer].dims)
      if (const std::optional<int64_t> element =
              tiling::namedElement(schedule, *loops, producer, axis, *equations[reader], read))
        named[axis] = body.index(*element);
  return named;
}

std::vector<NodeId> Lowering::partIndices(int equation, NodeId part, const NamedElements &named) {
  std::vector<NodeId> indices;
  for (auto [axis, ordinal] : accumulators[equation].dims) {
    if (const auto it = named.find(axis); it != named.end()) {
      indices.push_back(it->second);
      continue;
    }
    int seen = 0;
    NodeId index = kNoNode;
    for (const PathLoop &loop : path)
      if (loop.axis == axis && loop.kind == LoopKind::Unroll && seen++ == ordinal)
        index = body.axis(loop.var);
    if (index == kNoNode) {
      problem("a statement of e" + std::to_string(equation) + " lacks the unroll loop over " +
              schedule.axes[axis].name + " that its accumulator is indexed by");
      index = body.index(0);
    }
    indices.push_back(index);
  }
  if (accumulators[equation].parts > 1)
    indices.push_back(part);
  return indices;
}

/// Index into the Shared buffer that holds a tile of an internal tensor, for the element at `indices`, which are
/// values of the kernel's body.
NodeId Lowering::edgeIndex(int equation, TensorId tensor, const std::vector<NodeId> &indices) {
  const Local &local = locals.at(tensor);
  const int producer = producerOf(tensor);
  NodeId flat = body.index(0);
  for (auto [a, tile] : local.tiles) {
    if (tile == 1)
      continue;
    NodeId inside = kNoNode; // element of the axis, counted from the tile's origin
    const std::vector<int> &positions = schedule.axes[a].in(producer)->positions;
    // Past the extent a reduction reads the last element again, as its indices say: nothing wrote those behind it.
    const AxisUse *use = schedule.axes[a].in(equation);
    const bool clamped =
        clampSpatial && use && !use->reduction && checks[a] == Check::Needed && !onLanes(a);
    bool own = !clamped && std::all_of(positions.begin(), positions.end(), [&](int p) {
      return scheduleAxis(equation, p) == a && indices[p] == equationAxis(equation, p);
    });
    if (own) {
      inside = axisOffset(a, local.depth);
    } else {
      inside = body.index(0);
      for (int p : positions) {
        const DimExpr &size = equations[producer]->axes[p].extent;
        inside = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, inside, body.dim(size)),
                             indices[p]);
      }
      for (size_t i = 0; i < local.depth; ++i)
        if (path[i].axis == a)
          inside =
              body.binary(ScalarOp::Sub, inside,
                          body.binary(ScalarOp::Mul, loopValue(path[i]), body.index(path[i].step)));
    }
    flat = body.binary(ScalarOp::Add, body.binary(ScalarOp::Mul, flat, body.index(tile)), inside);
  }
  return flat;
}

} // namespace fusec::lowering

#include "Tiling/lower/LoopState.h"

#include <algorithm>

namespace fusec::lowering {

Loops LoopState::nodes() const {
  Loops nodes;
  for (const PathLoop &loop : path)
    nodes.push_back(loop.node);
  return nodes;
}

NodeId LoopState::value(const PathLoop &loop) {
  return loop.value == kNoNode ? body.axis(loop.var) : loop.value;
}

NodeId LoopState::axisValue(AxisId axis) {
  if (const auto it = overrides.find(axis); it != overrides.end())
    return it->second;
  return axisOffset(axis, 0);
}

NodeId LoopState::axisOffset(AxisId axis, size_t depth) {
  NodeId sum = body.index(0);
  for (size_t i = depth; i < path.size(); ++i)
    if (path[i].node->axis == axis)
      sum = writer.add(sum, writer.mul(value(path[i]), body.index(path[i].node->step)));
  return sum;
}

bool LoopState::isClamped(AxisId axis) const {
  return clampSpatial && checked.count(axis) != 0 && !onLanes(axis);
}

NodeId LoopState::clampedValue(AxisId axis) {
  const NodeId value = axisValue(axis);
  return isClamped(axis) ? writer.min(value, body.dim(extent(axis) - DimExpr(1))) : value;
}

NodeId LoopState::equationAxis(int equation, int position) {
  const AxisId a = bound.axisOf(equation, position);
  if (a < 0)
    return body.index(0);
  const AxisUse &use = *bound.use(a, equation);
  const std::vector<Axis> &axes = bound.equation(equation).axes;
  NodeId value = use.reduction ? axisValue(a) : clampedValue(a);
  DimExpr inner(1);
  const size_t place = std::ranges::find(use.positions, position) - use.positions.begin();
  for (size_t i = place + 1; i < use.positions.size(); ++i)
    inner = inner * axes[use.positions[i]].extent;
  if (!inner.isConst(1))
    value = writer.div(value, body.dim(inner));
  if (place > 0)
    value = writer.mod(value, body.dim(axes[position].extent));
  return value;
}

int64_t LoopState::tile(AxisId axis, size_t depth) const {
  const Loops around = nodes();
  return constantTile(bound, axis, std::span(around).first(depth));
}

int64_t LoopState::mostOfTile(AxisId axis) const {
  return lowering::mostOfTile(bound, axis, nodes());
}

bool LoopState::onLanes(AxisId axis) const {
  return std::ranges::any_of(path, [&](const PathLoop &l) {
    return l.node->axis == axis && l.node->kind == LoopKind::Lane;
  });
}

NodeId LoopState::trip(const LoopNode &node) {
  if (node.axis == kStepAxis)
    return body.dim(bound.scan()->steps);
  const DimExpr &whole = extent(node.axis);
  bool outermost = true, unitsPastEnd = false; // units of the last block that have nothing to do
  int64_t tile = 0;
  for (const PathLoop &loop : path)
    if (loop.node->axis == node.axis) {
      if (loop.node->kind == LoopKind::Unit && !outermost)
        unitsPastEnd = !whole.divisibleBy(tile, writer.kernel.symbols);
      outermost = false;
      tile = loop.node->step;
    }
  if (outermost)
    return body.dim(ceilDiv(whole, DimExpr(node.step)));
  if (tile % node.step != 0)
    writer.problem(node, " has a step that divides that of the loop around it, ", tile, ", given ",
                   node.step);
  if (node.kind != LoopKind::Seq ||
      (whole.divisibleBy(tile, writer.kernel.symbols) && !unitsPastEnd))
    return body.index(tile / node.step);
  // The last tile of an outer loop is cut at the extent.
  const NodeId left = writer.sub(body.dim(whole), axisValue(node.axis));
  NodeId here = writer.min(left, body.index(tile));
  if (unitsPastEnd)
    here = body.binary(ScalarOp::Max, here, body.index(0));
  const NodeId rounded = writer.add(here, body.index(node.step - 1));
  return writer.div(rounded, body.index(node.step));
}

NodeId LoopState::inBounds(int equation, Bounds bounds) {
  NodeId predicate = kNoNode;
  for (AxisId a : checked) {
    const AxisUse *use = bound.use(a, equation);
    if (use && (bounds == Bounds::All || use->reduction == (bounds == Bounds::Reduced)))
      predicate = body.logicalAnd(predicate, writer.less(axisValue(a), body.dim(extent(a))));
  }
  return predicate;
}

std::set<AxisId> LoopState::lanesPastEnd(int equation, uint64_t axes) const {
  std::set<AxisId> past;
  for (size_t p = 0; clampSpatial && p < bound.equation(equation).axes.size(); ++p) {
    const AxisId a = bound.axisOf(equation, static_cast<int>(p));
    if (a >= 0 && !bound.use(a, equation)->reduction && axes >> p & 1 && checked.count(a) != 0 &&
        onLanes(a))
      past.insert(a);
  }
  return past;
}

NodeId LoopState::within(const std::set<AxisId> &axes) {
  NodeId predicate = kNoNode;
  for (const AxisId a : axes)
    predicate = body.logicalAnd(predicate, writer.less(axisValue(a), body.dim(extent(a))));
  return predicate;
}

NodeId LoopState::outputIndex(int equation, size_t output) {
  const Equation &e = bound.equation(equation);
  const std::vector<DimExpr> strides = stridesOf(bound.program.tensor(e.outputs[output]).shape);
  NodeId flat = body.index(0);
  auto addTerm = [&](NodeId value, int position) {
    flat = writer.add(flat, writer.mul(value, body.dim(strides[position])));
  };
  for (AxisId a{0}; a < AxisId(bound.schedule.axes.size()); ++a) {
    const AxisUse *use = bound.use(a, equation);
    if (!use || use->reduction)
      continue;
    const std::vector<int> &positions = use->positions;
    bool contiguous = true;
    for (size_t i = 0; i + 1 < positions.size(); ++i)
      contiguous &=
          strides[positions[i]] == strides[positions[i + 1]] * e.axes[positions[i + 1]].extent;
    if (contiguous)
      addTerm(axisValue(a), positions.back());
    else
      for (int position : positions)
        addTerm(equationAxis(equation, position), position);
  }
  return flat;
}

NodeId LoopState::tileIndex(const SharedTile &tile, int equation,
                            const std::vector<NodeId> &indices) {
  NodeId flat = body.index(0);
  for (auto [a, size] : tile.axes) {
    if (size == 1)
      continue;
    NodeId inside = body.index(0); // element of the axis, counted from the tile's origin
    const std::vector<int> &positions = bound.use(a, tile.producer)->positions;
    // Past the extent a reduction reads the last element again, as its indices say: nothing wrote those behind it.
    const AxisUse *use = bound.use(a, equation);
    const bool clamped = use && !use->reduction && isClamped(a);
    // What a stage reads lies at the place of its element, of which the loops of the path say nothing.
    const bool own =
        !clamped && !overrides.contains(a) && std::ranges::all_of(positions, [&](int p) {
          return bound.axisOf(equation, p) == a && indices[p] == equationAxis(equation, p);
        });
    if (own) {
      inside = axisOffset(a, tile.depth);
    } else {
      for (int p : positions) {
        const DimExpr &extent = bound.equation(tile.producer).axes[p].extent;
        inside = writer.add(writer.mul(inside, body.dim(extent)), indices[p]);
      }
      for (size_t i = 0; i < tile.depth; ++i)
        if (path[i].node->axis == a)
          inside = writer.sub(inside, writer.mul(value(path[i]), body.index(path[i].node->step)));
    }
    flat = writer.add(writer.mul(flat, body.index(size)), inside);
  }
  return flat;
}

std::vector<NodeId> LoopState::registerIndex(const Accumulator &accumulator) {
  const auto parts = std::ranges::find_if(path, [&](const PathLoop &loop) {
    return loop.node->kind == LoopKind::Unroll && loop.node->axis == accumulator.partsAxis;
  });
  return partIndex(accumulator, parts == path.end() ? body.index(0) : body.axis(parts->var));
}

std::vector<NodeId> LoopState::partIndex(const Accumulator &accumulator, NodeId part,
                                         const NamedElements &named) {
  std::vector<NodeId> indices;
  for (auto [axis, ordinal] : accumulator.dims) {
    if (const auto it = named.find(axis); it != named.end()) {
      indices.push_back(it->second);
      continue;
    }
    int seen = 0;
    NodeId index = kNoNode;
    for (const PathLoop &loop : path)
      if (loop.node->axis == axis && loop.node->kind == LoopKind::Unroll && seen++ == ordinal)
        index = body.axis(loop.var);
    if (index == kNoNode) {
      writer.problem("all statements of e", accumulator.equation, " stand in unroll loops over ",
                     bound.schedule.axes[axis], " as its compute does, given one in ", nodes());
      index = body.index(0);
    }
    indices.push_back(index);
  }
  if (accumulator.parts > 1)
    indices.push_back(part);
  return indices;
}

} // namespace fusec::lowering

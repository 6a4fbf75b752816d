// Axes, addresses and reads of a lowering.
#include "Tiling/LowerContext.h"
#include "Tiling/StagedTile.h"

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

int Lowering::producerOf(TensorId tensor) const {
  for (size_t e = 0; e < equations.size(); ++e)
    if (std::count(equations[e]->outputs.begin(), equations[e]->outputs.end(), tensor) != 0)
      return static_cast<int>(e);
  return -1;
}

MemLevel Lowering::levelOf(TensorId tensor) const {
  for (const EdgeLevel &edge : schedule.edges)
    if (edge.tensor == tensor)
      return edge.level;
  return MemLevel::Global;
}

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

/// Of the current element of an accumulator: inside the Unroll loop over its parts the part of the iteration, else the
/// first one, which holds the result once they are folded.
std::vector<NodeId> Lowering::unrollIndices(int equation) {
  NodeId part = body.index(0);
  for (const PathLoop &loop : path)
    if (loop.kind == LoopKind::Unroll && loop.axis == accumulators[equation].partsAxis)
      part = body.axis(loop.var);
  return partIndices(equation, part);
}

std::vector<NodeId> Lowering::partIndices(int equation, NodeId part) {
  std::vector<NodeId> indices;
  for (auto [axis, ordinal] : accumulators[equation].dims) {
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
    bool own = std::all_of(positions.begin(), positions.end(), [&](int p) {
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

NodeId Lowering::readOperand(size_t index) {
  const Operand &operand = schedule.operands[index];
  std::vector<NodeId> digits;
  Shape shape;
  BufferId buffer;
  if (operand.level == MemLevel::Global) {
    buffer = globals.at(-2 - static_cast<TensorId>(index));
    shape = packedShape(schedule, operand);
    for (const LayoutDigit &digit : operand.digits) {
      NodeId value = axisValue(digit.axis);
      if (clampSpatial && checks[digit.axis] == Check::Needed && !onLanes(digit.axis))
        value = body.binary(ScalarOp::Min, value, body.dim(extent(digit.axis) - DimExpr(1)));
      if (digit.divide != 1)
        value = body.binary(ScalarOp::FloorDiv, value, body.index(digit.divide));
      if (digit.modulus != 0)
        value = body.binary(ScalarOp::FloorMod, value, body.index(digit.modulus));
      digits.push_back(value);
    }
  } else {
    const Staged &stage = staged[index];
    if (stage.buffer < 0) {
      problem("operand " + operand.name + " is used before it is staged");
      return body.index(0);
    }
    buffer = stage.buffer;
    for (size_t d = 0; d < operand.digits.size(); ++d) {
      const LayoutDigit &digit = operand.digits[d];
      shape.push_back(DimExpr(stage.extents[d]));
      if (digit.index < 0) {
        digits.push_back(axisOffset(digit.axis, stage.depth));
        continue;
      }
      const Equation &e = *equations[operand.equation];
      NodeId read = readsOf(e)[operand.read];
      NodeId here = importValue(operand.equation, indexOperands(e.body[read])[digit.index]);
      digits.push_back(body.binary(ScalarOp::Sub, here, stage.bases[d]));
    }
    shape.back() = shape.back() + DimExpr(operand.padElements);
  }
  NodeId flat = tensorIndex(shape, digits);
  DType type = kernel.buffers[buffer].type;
  if (operand.level == MemLevel::Global) {
    const Equation &e = *equations[operand.equation];
    NodeId mask = lanePredicate(operand.equation, axisDependence(e.body, readsOf(e)[operand.read]));
    if (mask != kNoNode)
      return body.readIf(buffer, type, mask, body.constant(type, 0), {flat});
  }
  return body.read(buffer, type, {flat});
}

NodeId Lowering::readTensor(int equation, NodeId original, const Scalar &copied) {
  const Equation &e = *equations[equation];
  std::vector<NodeId> reads = readsOf(e);
  int ordinal = static_cast<int>(std::find(reads.begin(), reads.end(), original) - reads.begin());
  for (size_t o = 0; o < schedule.operands.size(); ++o)
    if (schedule.operands[o].equation == equation && schedule.operands[o].read == ordinal &&
        axisOverride.empty())
      return readOperand(o);

  TensorId tensor = copied.index;
  const Tensor &info = pattern.tensors[tensor];
  if (int producer = producerOf(tensor); producer >= 0 && levelOf(tensor) == MemLevel::Register) {
    const std::vector<TensorId> &outputs = equations[producer]->outputs;
    const auto output = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    const BufferId source = accumulatorOf(producer, static_cast<size_t>(output));
    NodeId value = readRegister(producer, source);
    value = body.cast(info.type, value);
    if (copied.op != ScalarOp::ReadIf)
      return value;
    return body.select(copied.args[0], value, copied.args[1]);
  }
  NodeId flat;
  BufferId buffer;
  bool whole = true;
  if (auto it = locals.find(tensor); it != locals.end()) {
    buffer = it->second.buffer;
    whole = it->second.whole;
  } else {
    buffer = globalBuffer(tensor);
  }
  if (whole) {
    flat = flatIndex(equation, original);
    if (flat == kNoNode) {
      flat = tensorIndex(info.shape, indexOperands(copied));
    }
  } else {
    flat = edgeIndex(equation, tensor, indexOperands(copied));
  }
  NodeId predicate = copied.op == ScalarOp::ReadIf ? copied.args[0] : kNoNode;
  predicate = body.logicalAnd(predicate, lanePredicate(equation, axisDependence(e.body, original)));
  const ScanCarry *written = inRounds ? carryOf(tensor, true) : nullptr;
  if (written || (inRounds && carryOf(tensor, false)))
    flat = body.binary(ScalarOp::Add, flat, halfOf(tensor, written != nullptr));
  if (scan && !written)
    for (const ScanOutput &output : scan->scanOutputs)
      if (output.perStep == tensor && buffer == globalBuffer(output.stacked))
        flat = body.binary(
            ScalarOp::Add, flat,
            body.binary(ScalarOp::Mul, stackedStep(), body.dim(numElements(info.shape))));
  if (predicate == kNoNode)
    return body.read(buffer, info.type, {flat});
  NodeId otherwise = copied.op == ScalarOp::ReadIf ? copied.args[1] : body.constant(info.type, 0);
  return body.readIf(buffer, info.type, predicate, otherwise, {flat});
}

/// Index along the leading axis of a stacked output for the current step.
NodeId Lowering::stackedStep() {
  NodeId step = roundVar >= 0 ? body.axis(roundVar) : kNoNode;
  for (const PathLoop &loop : path)
    if (loop.axis == kStepAxis)
      step = body.axis(loop.var);
  assert(step != kNoNode && "per-step values are touched inside the step loop only");
  if (scan->reversed)
    step = body.binary(ScalarOp::Sub, body.dim(scan->steps - DimExpr(1)), step);
  return step;
}

NodeId Lowering::importValue(int equation, NodeId root) {
  const Equation &e = *equations[equation];
  return body.import(e.body, root, [&](const Scalar &copied, NodeId original) -> NodeId {
    switch (copied.op) {
    case ScalarOp::Axis: return equationAxis(equation, copied.index);
    case ScalarOp::Step: return stackedStep();
    case ScalarOp::State: return readRegister(equation, cascades.at(equation).states[copied.index]);
    case ScalarOp::Part: return readRegister(equation, (*partRegisters)[copied.index]);
    default: return readTensor(equation, original, copied);
    }
  });
}

} // namespace fusec::lowering

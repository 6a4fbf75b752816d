// Reads of a lowering: what an equation's expressions become in the kernel.
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/Schedule.h"

#include <algorithm>

namespace fusec::lowering {

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

/// A Compute statement's read of memory gets the number of its place.
NodeId Lowering::numbered(int equation, int read, NodeId node) {
  Scalar s = body[node];
  if (computeRank < 0 || !axisOverride.empty() || s.imm != 0 ||
      (s.op != ScalarOp::Read && s.op != ScalarOp::ReadIf) ||
      kernel.buffers[s.index].level == MemLevel::Register)
    return node;
  const ReadPlace place{equation, computeRank, read};
  auto it = std::find(out.reads.begin(), out.reads.end(), place);
  if (it == out.reads.end())
    it = out.reads.insert(it, place);
  s.imm = it - out.reads.begin() + 1;
  return body.addExact(std::move(s));
}

NodeId Lowering::readTensor(int equation, NodeId original, const Scalar &copied) {
  const std::vector<NodeId> reads = readsOf(*equations[equation]);
  const auto ordinal =
      static_cast<int>(std::find(reads.begin(), reads.end(), original) - reads.begin());
  if (holding == Holding::Use && computeRank >= 0 && axisOverride.empty())
    if (const ReadPlace place{equation, 0, ordinal};
        const tiling::PersistentRead *read = persistentAt(place))
      return persistentElement(*read, place);
  if (const Operand *operand = tiling::operandOf(schedule, equation, ordinal);
      operand && axisOverride.empty())
    return numbered(equation, ordinal,
                    readOperand(static_cast<size_t>(operand - schedule.operands.data())));
  return numbered(equation, ordinal, readMemory(equation, original, copied));
}

NodeId Lowering::readMemory(int equation, NodeId original, const Scalar &copied) {
  const Equation &e = *equations[equation];
  TensorId tensor = copied.index;
  const Tensor &info = pattern.tensors[tensor];
  if (int producer = producerOf(tensor); producer >= 0 && levelOf(tensor) == MemLevel::Register) {
    const std::vector<TensorId> &outputs = equations[producer]->outputs;
    const auto output = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    const BufferId source = accumulatorOf(producer, static_cast<size_t>(output));
    NodeId value = readRegister(producer, source, namedElements(producer, equation, original));
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
  const bool inHalves = inGridScan && locals.count(tensor) == 0;
  const ScanCarry *written = inHalves ? carryOf(tensor, true) : nullptr;
  if (written || (inHalves && carryOf(tensor, false)))
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

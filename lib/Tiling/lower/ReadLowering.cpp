#include "Tiling/lower/ReadLowering.h"

#include "Expr/Padding.h"

#include <algorithm>

namespace fusec::lowering {

NodeId ReadLowering::value(int equation, NodeId root, const std::vector<BufferId> *parts) {
  const Accumulator &acc = buffers.accumulators[equation];
  return body.import(bound.equation(equation).body, root,
                     [&](const Scalar &copied, NodeId original) -> NodeId {
                       switch (copied.op) {
                       case ScalarOp::Axis: return loops.equationAxis(equation, copied.index);
                       case ScalarOp::Step: return steps.step();
                       case ScalarOp::State: return readRegister(acc, acc.states.at(copied.index));
                       case ScalarOp::Part: return readRegister(acc, parts->at(copied.index));
                       default: return readTensor(equation, original, copied);
                       }
                     });
}

NodeId ReadLowering::readRegister(const Accumulator &accumulator, BufferId buffer) {
  return writer.read(buffer, loops.registerIndex(accumulator));
}

NodeId ReadLowering::readTensor(int equation, NodeId original, const Scalar &copied) {
  const int ordinal = bound.facts(equation).ordinalOf(original);
  const bool isElementwise = loops.overrides.empty();
  if (persistent.mode == PersistentValues::Mode::Use && computeRank >= 0 && isElementwise)
    if (const ReadPlace place{equation, 0, ordinal};
        const tiling::PersistentRead *read = persistent.find(place))
      return persistent.element(*read, place);
  const ReadPlace place{equation, computeRank, ordinal};
  const Operand *operand = bound.operand(equation, ordinal);
  if (!operand || !isElementwise)
    return numbered(place, readMemory(equation, original, copied));
  const auto index = static_cast<size_t>(operand - bound.schedule.operands.data());
  return numbered(place, operand->level == MemLevel::Global
                             ? readPacked(*operand, index)
                             : readStaged(*operand, buffers.staged[index]));
}

/// Gives a Compute statement's read of memory the number of its place.
NodeId ReadLowering::numbered(const ReadPlace &place, NodeId node) {
  Scalar s = body[node];
  if (place.rank < 0 || !loops.overrides.empty() || s.imm != 0 ||
      (s.op != ScalarOp::Read && s.op != ScalarOp::ReadIf) ||
      writer.kernel.buffers[s.index].level == MemLevel::Register)
    return node;
  std::vector<ReadPlace> &places = writer.out.reads;
  auto it = std::ranges::find(places, place);
  if (it == places.end())
    it = places.insert(it, place);
  s.imm = it - places.begin() + 1;
  return body.addExact(std::move(s));
}

/// Whether lanes past the axis's extent, which need a mask, are of panels (n/16, .., n%16): the last one is filled up.
static bool liesInPanels(const Operand &operand, const LayoutDigit &panel) {
  return panel.divide > 1 && panel.modulus == 0 &&
         std::ranges::any_of(operand.digits, [&](const LayoutDigit &d) {
           return d.axis == panel.axis && d.divide == 1 && d.modulus == panel.divide;
         });
}

NodeId ReadLowering::readPacked(const Operand &operand, size_t index) {
  const uint64_t axes = bound.facts(operand.equation).axes[bound.program.nodeOf(operand)];
  const Shape shape = packedShape(bound.schedule, operand);
  std::set<AxisId> masked = loops.lanesPastEnd(operand.equation, axes);
  std::vector<NodeId> digits;
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    NodeId value = loops.clampedValue(digit.axis);
    if (digit.divide != 1)
      value = writer.div(value, body.index(digit.divide));
    if (digit.modulus != 0)
      value = writer.mod(value, body.index(digit.modulus));
    // Whole panels past the end are moved to the last one, as rows are: a mask in the loop over the sum takes a product
    // that streams from memory twice as long.
    if (masked.count(digit.axis) != 0 && liesInPanels(operand, digit)) {
      value = writer.min(value, body.dim(shape[d] - DimExpr(1)));
      masked.erase(digit.axis);
    }
    digits.push_back(value);
  }
  const BufferId buffer = buffers.packed(index);
  const NodeId flat = writer.flatIndex(shape, digits);
  const NodeId mask = loops.within(masked);
  if (mask == kNoNode)
    return writer.read(buffer, {flat});
  const DType type = writer.kernel.buffers[buffer].type;
  return body.readIf(buffer, type, mask, body.constant(type, 0), {flat});
}

NodeId ReadLowering::readStaged(const Operand &operand, const StagedOperand &stage) {
  if (stage.buffer < 0) {
    writer.problem(operand, " is staged before e", operand.equation, " reads it, given behind it");
    return body.index(0);
  }
  std::vector<NodeId> digits;
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    const LayoutDigit &digit = operand.digits[d];
    if (digit.index < 0) {
      digits.push_back(loops.axisOffset(digit.axis, stage.depth));
      continue;
    }
    const Scalar &read = bound.equation(operand.equation).body[bound.program.nodeOf(operand)];
    const NodeId here = value(operand.equation, indexOperands(read)[digit.index]);
    digits.push_back(writer.sub(here, stage.bases[d]));
  }
  return writer.read(stage.buffer, {writer.flatIndex(stage.shape, digits)});
}

/// Reads an internal tensor in the registers of the equation that makes it.
NodeId ReadLowering::readProducer(int producer, int equation, NodeId original,
                                  const Scalar &copied) {
  const Accumulator &acc = buffers.accumulators[producer];
  const std::vector<TensorId> &outputs = bound.equation(producer).outputs;
  const auto output = std::ranges::find(outputs, copied.index) - outputs.begin();
  NamedElements named;
  for (auto [axis, ordinal] : acc.dims)
    if (const std::optional<int64_t> element =
            tiling::namedElement(bound, producer, axis, equation, original))
      named[axis] = body.index(*element);
  // The first part, with all others folded into it, though a loop of the reader may run over the axis that has parts.
  NodeId value = writer.read(acc.outputs.at(output), loops.partIndex(acc, body.index(0), named));
  value = body.cast(bound.program.tensor(copied.index).type, value);
  if (copied.op != ScalarOp::ReadIf)
    return value;
  return body.select(copied.args[0], value, copied.args[1]);
}

/// Axes of which lanes beyond the extent read nothing, as the read's own predicate says.
uint64_t ReadLowering::boundByPadding(int equation, NodeId read) const {
  uint64_t axes = axesThatPaddingBounds(bound.equation(equation), read, bound.program.expr);
  for (size_t p = 0; p < bound.equation(equation).axes.size(); ++p)
    if (const AxisId a = bound.axisOf(equation, static_cast<int>(p));
        a < 0 || bound.use(a, equation)->positions.size() != 1)
      axes &= ~(uint64_t{1} << p); // the digits of a fused axis turn over
  return axes;
}

NodeId ReadLowering::readMemory(int equation, NodeId original, const Scalar &copied) {
  const Equation &e = bound.equation(equation);
  const TensorId tensor = copied.index;
  const Tensor &info = bound.program.tensor(tensor);
  if (const int producer = bound.program.producer(tensor);
      producer >= 0 && bound.level(tensor) == MemLevel::Register)
    return readProducer(producer, equation, original, copied);
  const BufferId buffer = buffers.memoryOf(tensor);
  NodeId flat;
  if (const SharedTile *tile = buffers.shared(tensor); tile && !tile->whole)
    flat = loops.tileIndex(*tile, equation, indexOperands(copied));
  else if (const auto access = flatAccess(e, original, bound.program.expr))
    flat = address(equation, *access);
  else
    flat = writer.flatIndex(info.shape, indexOperands(copied));
  NodeId predicate = copied.op == ScalarOp::ReadIf ? copied.args[0] : kNoNode;
  uint64_t axes = bound.facts(equation).axes[original];
  if (copied.op == ScalarOp::ReadIf)
    axes &= ~boundByPadding(equation, original);
  predicate = body.logicalAnd(predicate, loops.laneMask(equation, axes));
  flat = steps.readAddress(tensor, buffer, flat);
  if (predicate == kNoNode)
    return body.read(buffer, info.type, {flat});
  const NodeId otherwise =
      copied.op == ScalarOp::ReadIf ? copied.args[1] : body.constant(info.type, 0);
  return body.readIf(buffer, info.type, predicate, otherwise, {flat});
}

/// Axes that the schedule fuses are a single term where the address runs over them without a gap.
NodeId ReadLowering::address(int equation, const FlatAccess &access) {
  const Equation &e = bound.equation(equation);
  NodeId flat = body.dim(access.constant);
  auto addTerm = [&](NodeId value, const DimExpr &stride) {
    if (!stride.isConst(0))
      flat = writer.add(flat, writer.mul(value, body.dim(stride)));
  };
  for (const FlatAccess::Rest &rest : access.rests)
    addTerm(value(equation, rest.value), rest.stride);
  std::vector<bool> done(e.axes.size(), false);
  for (size_t p = 0; p < e.axes.size(); ++p) {
    const AxisId a = bound.axisOf(equation, static_cast<int>(p));
    if (done[p] || a < 0)
      continue;
    const AxisUse &use = *bound.use(a, equation);
    const std::vector<int> &members = use.positions;
    bool contiguous = true;
    for (size_t i = 0; i + 1 < members.size(); ++i)
      contiguous &= access.stride[members[i]] ==
                    access.stride[members[i + 1]] * e.axes[members[i + 1]].extent;
    for (int member : members)
      done[member] = true;
    if (contiguous)
      addTerm(use.reduction ? loops.axisValue(a) : loops.clampedValue(a),
              access.stride[members.back()]);
    else
      for (int member : members)
        addTerm(loops.equationAxis(equation, member), access.stride[member]);
  }
  return flat;
}

} // namespace fusec::lowering

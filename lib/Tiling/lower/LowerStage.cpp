// Staging of operands into a block's own memory.
#include "Tiling/lower/LowerContext.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::lowering {

/// Copies an operand's tile into its Shared buffer, one element a lane at a time. Elements beyond the tensor (cut
/// tiles, padding) become the read's else-value or 0.
void Lowering::lowerStage(size_t index, std::vector<Stmt> &result) {
  const Operand &operand = schedule.operands[index];
  const Equation &e = *equations[operand.equation];
  NodeId read = readsOf(e)[operand.read];
  const Tensor &tensor = pattern.tensors[e.body[read].index];
  Staged &stage = staged[index];
  stage.depth = path.size();
  stage.bases.assign(operand.digits.size(), kNoNode);
  std::vector<int64_t> extents =
      tiling::stagedExtents(schedule, e, operand, [&](AxisId a) { return tileAt(a, path.size()); });
  if (std::count(extents.begin(), extents.end(), 0) != 0)
    return problem("the tile of operand " + operand.name + " has no constant size");
  for (size_t d = 0; d < operand.digits.size(); ++d)
    if (int dimension = operand.digits[d].index; dimension >= 0)
      stage.bases[d] = lowestIndex(operand.equation, indexOperands(e.body[read])[dimension]);
  if (operand.digits[0].index < 0)
    checkStageCovers(operand, axisDependence(e.body, read));
  if (stage.buffer < 0) {
    GirBuffer buffer;
    buffer.name = operand.name;
    buffer.level = MemLevel::Shared;
    buffer.type = tensor.type;
    int64_t elements = 1;
    for (size_t d = 0; d < extents.size(); ++d)
      elements *= extents[d] + (d + 1 == extents.size() ? operand.padElements : 0);
    buffer.shape = {DimExpr(elements)};
    kernel.buffers.push_back(std::move(buffer));
    stage.buffer = static_cast<BufferId>(kernel.buffers.size() - 1);
    stage.extents = extents;
  }

  // The others follow from the inside out.
  const size_t lanesDigit =
      tiling::copiedDigit(schedule, pattern, e, operand, flatAccess(e, read, pattern), extents)
          .digit;
  std::vector<size_t> order; // fastest first
  order.push_back(lanesDigit);
  for (size_t d = operand.digits.size(); d-- > 0;)
    if (d != lanesDigit)
      order.push_back(d);
  int64_t total = 1;
  for (int64_t x : extents)
    total *= x;

  auto emit = [&](const std::vector<NodeId> &digits) {
    NodeId cut = kNoNode; // false beyond the extents of the axes
    NodeId value;
    if (operand.digits[0].index >= 0) {
      auto bounds = paddingBounds(e, read, pattern);
      std::vector<NodeId> indices(operand.digits.size());
      bool padded = e.body[read].op == ScalarOp::ReadIf;
      NodeId valid = kNoNode;
      for (size_t d = 0; d < digits.size(); ++d) {
        NodeId position = body.binary(ScalarOp::Add, stage.bases[d], digits[d]);
        int dimension = operand.digits[d].index;
        indices[dimension] = position;
        DimExpr lower(0), upper = tensor.shape[dimension] - DimExpr(1);
        if (padded) {
          lower = (*bounds)[dimension].lower;
          upper = (*bounds)[dimension].upper;
        }
        valid = body.logicalAnd(valid, body.binary(ScalarOp::Le, body.dim(lower), position));
        valid = body.logicalAnd(valid, body.binary(ScalarOp::Le, position, body.dim(upper)));
      }
      NodeId otherwise = padded ? importValue(operand.equation, e.body[read].args[1])
                                : body.constant(tensor.type, 0);
      value = body.readIf(globalBuffer(e.body[read].index), tensor.type, valid, otherwise,
                          {tensorIndex(tensor.shape, indices)});
    } else {
      for (size_t d = 0; d < digits.size(); ++d) {
        AxisId a = operand.digits[d].axis;
        NodeId position = body.binary(ScalarOp::Add, axisOffset(a, 0), digits[d]);
        axisOverride[a] = position;
        if (!extent(a).divisibleBy(extents[d], symbols))
          cut = body.logicalAnd(cut, body.binary(ScalarOp::Lt, position, body.dim(extent(a))));
      }
      value = importValue(operand.equation, read);
      axisOverride.clear();
    }
    Shape shape;
    for (int64_t x : extents)
      shape.push_back(DimExpr(x));
    shape.back() = shape.back() + DimExpr(operand.padElements);
    NodeId place = tensorIndex(shape, digits);
    std::vector<Stmt> statements;
    guarded(cut, {storeStmt(stage.buffer, {place}, value)}, statements);
    if (cut != kNoNode)
      statements[0].elseBody.push_back(
          storeStmt(stage.buffer, {place}, body.constant(tensor.type, 0)));
    return statements;
  };

  if (schedule.units == 1)
    return stageOnCpu(order, extents, emit, result);
  auto emitFlat = [&](NodeId flat) {
    std::vector<NodeId> digits(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      NodeId size = body.index(extents[order[i]]);
      bool last = i + 1 == order.size();
      digits[order[i]] = last ? flat : body.binary(ScalarOp::FloorMod, flat, size);
      if (!last)
        flat = body.binary(ScalarOp::FloorDiv, flat, size);
    }
    return emit(digits);
  };
  cooperative(body.index(total), emitFlat, result);
}

/// The least value of an affine index expression over the tile below the current loops.
NodeId Lowering::lowestIndex(int equation, NodeId index) {
  const Equation &e = *equations[equation];
  int numAxes = static_cast<int>(e.axes.size());
  std::optional<AffineForm> form = affineForm(e.body, index, numAxes);
  NodeId lowest = body.dim(form->constant);
  if (form->rest != kNoNode)
    lowest = body.binary(ScalarOp::Add, lowest, importValue(equation, form->rest));
  for (int p = 0; p < numAxes; ++p) {
    AxisId a = scheduleAxis(equation, p);
    if (form->coefficients[p].isConst(0) || a < 0)
      continue;
    std::optional<tiling::PositionTile> part = tiling::positionTile(
        e, schedule.axes[a].in(equation)->positions, p, tileAt(a, path.size()));
    NodeId value = part->fromZero ? body.index(0) : equationAxis(equation, p);
    if (form->coefficients[p].constValue() < 0) // the last one is lowest
      value = body.binary(ScalarOp::Add, value, body.index(part->size - 1));
    lowest = body.binary(ScalarOp::Add, lowest,
                         body.binary(ScalarOp::Mul, value, body.dim(form->coefficients[p])));
  }
  return lowest;
}

/// Every axis that the operand depends on is either fixed where it is staged or one of its digits.
void Lowering::checkStageCovers(const Operand &operand, uint64_t axes) {
  for (size_t p = 0; p < equations[operand.equation]->axes.size(); ++p) {
    AxisId a = scheduleAxis(operand.equation, static_cast<int>(p));
    if (!(axes >> p & 1) || a < 0 || tileAt(a, path.size()) == 1)
      continue;
    bool isDigit = std::any_of(operand.digits.begin(), operand.digits.end(),
                               [&](const LayoutDigit &digit) { return digit.axis == a; });
    if (!isDigit)
      problem("operand " + operand.name + " varies with axis " + schedule.axes[a].name +
              " inside its tile, but has no digit for it");
  }
}

/// One unit: a loop a digit instead of a flat index, so that no address needs a division, with vectors along the
/// digit that is contiguous in memory.
void Lowering::stageOnCpu(const std::vector<size_t> &order, const std::vector<int64_t> &extents,
                          const std::function<std::vector<Stmt>(const std::vector<NodeId> &)> &emit,
                          std::vector<Stmt> &result) {
  std::vector<Stmt> loops;
  std::vector<NodeId> digits(order.size());
  for (size_t i = 1; i < order.size(); ++i) {
    Stmt loop;
    loop.kind = StmtKind::Loop;
    loop.trip = body.index(extents[order[i]]);
    loop.var = newVar("s", LoopKind::Seq, {0, extents[order[i]] - 1, std::nullopt});
    digits[order[i]] = body.axis(loop.var);
    loops.insert(loops.begin(), std::move(loop));
  }
  std::vector<Stmt> innermost;
  auto emitLane = [&](NodeId position) {
    digits[order[0]] = position;
    return emit(digits);
  };
  cooperative(body.index(extents[order[0]]), emitLane, innermost);
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(innermost);
    innermost.clear();
    innermost.push_back(std::move(loops[i]));
  }
  for (Stmt &s : innermost)
    result.push_back(std::move(s));
}

} // namespace fusec::lowering

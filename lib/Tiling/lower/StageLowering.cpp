#include "Tiling/lower/StageLowering.h"

#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::lowering {

void StageLowering::stage(OperandIndex index, Stmts &result) {
  const Operand &operand = bound.schedule.operands[index];
  const Equation &e = bound.equation(operand.equation);
  const NodeId read = bound.program.nodeOf(operand);
  Tile tile{operand,
            e,
            read,
            bound.program.tensor(e.body[read].index),
            {},
            {},
            parts.buffers.staged[index]};
  StagedOperand &stage = tile.stage;
  stage.depth = loops.path.size();
  stage.bases.assign(operand.digits.size(), kNoNode);
  tile.extents = tiling::stagedExtents(bound.schedule, e, operand,
                                       [&](AxisId a) { return loops.mostOfTile(a); });
  if (const auto none = std::find(tile.extents.begin(), tile.extents.end(), 0);
      none != tile.extents.end())
    return writer.problem(operand, " has a tile of a size with a bound, given one without along ",
                          operand.digits[static_cast<size_t>(none - tile.extents.begin())],
                          "; put a loop over it around its stage");
  for (size_t d = 0; d < operand.digits.size(); ++d)
    if (const int dimension = operand.digits[d].index; dimension >= 0)
      stage.bases[d] = lowestIndex(operand.equation, indexOperands(e.body[read])[dimension]);
  if (operand.digits[0].index < 0)
    checkCovers(tile);
  if (stage.buffer < 0)
    addBuffer(tile);

  tile.order = tiling::copyOrder(bound, operand, tile.extents).digits;
  writer.units == 1 ? copyByDigits(tile, result) : copyFlat(tile, result);
}

void StageLowering::addBuffer(const Tile &tile) {
  StagedOperand &stage = tile.stage;
  for (int64_t extent : tile.extents)
    stage.shape.push_back(DimExpr(extent));
  stage.shape.back() = stage.shape.back() + DimExpr(tile.operand.padElements);
  stage.buffer = writer.addBuffer({.name = tile.operand.name,
                                   .level = MemLevel::Shared,
                                   .type = tile.tensor.type,
                                   .shape = {numElements(stage.shape)}});
}

/// The least value of an affine index expression over the tile below the current loops.
NodeId StageLowering::lowestIndex(int equation, NodeId index) {
  const Equation &e = bound.equation(equation);
  const int numAxes = static_cast<int>(e.axes.size());
  const std::optional<AffineForm> form = affineForm(e.body, index, numAxes);
  NodeId lowest = body.dim(form->constant);
  if (form->rest != kNoNode)
    lowest = writer.add(lowest, reads.value(equation, form->rest));
  for (int p = 0; p < numAxes; ++p) {
    const AxisId a = bound.axisOf(equation, p);
    if (form->coefficients[p].isConst(0) || a < 0)
      continue;
    const std::optional<tiling::PositionTile> part =
        tiling::positionTile(e, bound.use(a, equation)->positions, p, loops.mostOfTile(a));
    NodeId value = part->fromZero ? body.index(0) : loops.equationAxis(equation, p);
    if (form->coefficients[p].constValue() < 0) // the last one is lowest
      value = writer.add(value, body.index(part->size - 1));
    lowest = writer.add(lowest, writer.mul(value, body.dim(form->coefficients[p])));
  }
  return lowest;
}

/// Every axis that the operand depends on must be fixed where it is staged, or one of its digits.
void StageLowering::checkCovers(const Tile &tile) {
  const Operand &operand = tile.operand;
  const uint64_t axes = bound.facts(operand.equation).axes[tile.read];
  for (size_t p = 0; p < tile.equation.axes.size(); ++p) {
    const AxisId a = bound.axisOf(operand.equation, static_cast<int>(p));
    if (!(axes >> p & 1) || a < 0 || loops.tile(a) == 1)
      continue;
    if (std::ranges::none_of(operand.digits,
                             [&](const LayoutDigit &digit) { return digit.axis == a; }))
      writer.problem(operand, " has a digit of each axis that its tile spans, given none of ",
                     bound.schedule.axes[a]);
  }
}

/// The element of the tensor at the place that the digits are indices of, if it lies inside of the tensor.
NodeId StageLowering::boxElement(const Tile &tile, const Digits &digits) {
  const Scalar &read = tile.equation.body[tile.read];
  const auto bounds = paddingBounds(tile.equation, tile.read, bound.program.expr);
  const bool padded = read.op == ScalarOp::ReadIf;
  std::vector<NodeId> indices(digits.size());
  NodeId inside = kNoNode;
  for (size_t d = 0; d < digits.size(); ++d) {
    const NodeId position = writer.add(tile.stage.bases[d], digits[d]);
    const int dimension = tile.operand.digits[d].index;
    indices[dimension] = position;
    DimExpr lower(0), upper = tile.tensor.shape[dimension] - DimExpr(1);
    if (padded) {
      lower = (*bounds)[dimension].lower;
      upper = (*bounds)[dimension].upper;
    }
    inside = body.logicalAnd(inside, writer.atMost(body.dim(lower), position));
    inside = body.logicalAnd(inside, writer.atMost(position, body.dim(upper)));
  }
  const NodeId otherwise = padded ? reads.value(tile.operand.equation, read.args[1])
                                  : body.constant(tile.tensor.type, 0);
  return body.readIf(parts.buffers.global(read.index), tile.tensor.type, inside, otherwise,
                     {writer.flatIndex(tile.tensor.shape, indices)});
}

/// The read's value at the point that the digits are axes of. `inside`: false beyond the extents of the axes.
NodeId StageLowering::axesElement(const Tile &tile, const Digits &digits, NodeId &inside) {
  for (size_t d = 0; d < digits.size(); ++d) {
    const AxisId a = tile.operand.digits[d].axis;
    const NodeId position = writer.add(loops.axisOffset(a, 0), digits[d]);
    loops.overrides[a] = position;
    if (!isWhole(tile, d) && !loops.extent(a).divisibleBy(tile.extents[d], writer.kernel.symbols))
      inside = body.logicalAnd(inside, writer.less(position, body.dim(loops.extent(a))));
  }
  const NodeId value = reads.value(tile.operand.equation, tile.read);
  loops.overrides.clear();
  return value;
}

/// The digit runs over all of an axis of symbolic extent, to its end and no further.
bool StageLowering::isWhole(const Tile &tile, size_t digit) const {
  const LayoutDigit &of = tile.operand.digits[digit];
  return of.index < 0 && loops.tile(of.axis) == 0;
}

/// Elements that are copied along a digit: the buffer may have room for more.
NodeId StageLowering::copied(const Tile &tile, size_t digit) {
  return isWhole(tile, digit) ? body.dim(loops.extent(tile.operand.digits[digit].axis))
                              : body.index(tile.extents[digit]);
}

Stmts StageLowering::copyElement(const Tile &tile, const Digits &digits) {
  NodeId inside = kNoNode;
  const NodeId value = tile.operand.digits[0].index >= 0 ? boxElement(tile, digits)
                                                         : axesElement(tile, digits, inside);
  const NodeId place = writer.flatIndex(tile.stage.shape, digits);
  Stmts statements;
  writer.guarded(inside, {storeStmt(tile.stage.buffer, {place}, value)}, statements);
  if (inside != kNoNode)
    statements[0].elseBody.push_back(
        storeStmt(tile.stage.buffer, {place}, body.constant(tile.tensor.type, 0)));
  return statements;
}

/// All threads of the block step over the tile's elements together.
void StageLowering::copyFlat(const Tile &tile, Stmts &result) {
  NodeId total = body.index(1);
  for (size_t d = 0; d < tile.extents.size(); ++d)
    total = writer.mul(total, copied(tile, d));
  auto emit = [&](NodeId flat) {
    Digits digits(tile.order.size());
    for (size_t i = 0; i + 1 < tile.order.size(); ++i) {
      const NodeId size = copied(tile, tile.order[i]);
      digits[tile.order[i]] = writer.mod(flat, size);
      flat = writer.div(flat, size);
    }
    digits[tile.order.back()] = flat;
    return copyElement(tile, digits);
  };
  writer.cooperative(total, emit, result);
}

/// One unit: a loop a digit instead of a flat index, so that no address needs a division, with vectors along the
/// digit that is contiguous in memory.
void StageLowering::copyByDigits(const Tile &tile, Stmts &result) {
  Stmts outer;
  Digits digits(tile.order.size());
  for (size_t i = 1; i < tile.order.size(); ++i) {
    const size_t d = tile.order[i];
    outer.push_back(writer.loop(LoopKind::Seq, copied(tile, d), "s"));
    digits[d] = body.axis(outer.back().var);
  }
  auto emit = [&](NodeId position) {
    digits[tile.order[0]] = position;
    return copyElement(tile, digits);
  };
  Stmts inner;
  writer.cooperative(copied(tile, tile.order[0]), emit, inner);
  for (Stmt &loop : outer) { // the first one goes inside
    loop.body = std::move(inner);
    inner.clear();
    inner.push_back(std::move(loop));
  }
  for (Stmt &s : inner)
    result.push_back(std::move(s));
}

} // namespace fusec::lowering

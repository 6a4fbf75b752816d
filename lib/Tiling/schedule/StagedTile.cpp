#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::tiling {

std::optional<PositionTile> positionTile(const Equation &equation,
                                         const std::vector<int> &positions, int position,
                                         int64_t tile) {
  auto here = std::ranges::find(positions, position);
  int64_t inner = 1; // steps of the fused axis that keep the position where it is
  for (auto p = here + 1; p != positions.end(); ++p) {
    if (!equation.axes[*p].extent.isConst())
      return std::nullopt;
    inner *= equation.axes[*p].extent.constValue();
  }
  bool aligned = inner % tile == 0 || tile % inner == 0;
  int64_t values = inner % tile == 0   ? 1
                   : tile % inner == 0 ? tile / inner
                                       : (tile + inner - 2) / inner + 1;
  if (here == positions.begin())
    return PositionTile{values, false};
  if (!equation.axes[position].extent.isConst())
    return std::nullopt;
  int64_t extent = equation.axes[position].extent.constValue();
  if (aligned && extent % values == 0)
    return PositionTile{values, false};
  return PositionTile{extent, true};
}

std::vector<int64_t> stagedExtents(const Schedule &schedule, const Equation &equation,
                                   const Operand &operand, const TileOf &tileOf) {
  std::vector<int64_t> extents;
  std::vector<NodeId> indices = indexOperands(equation.body[readsOf(equation)[operand.read]]);
  int numAxes = static_cast<int>(equation.axes.size());
  auto span = [&](NodeId index) -> int64_t {
    std::optional<AffineForm> form = affineForm(equation.body, index, numAxes);
    if (!form)
      return 0;
    int64_t elements = 1;
    for (int p = 0; p < numAxes; ++p) {
      AxisId a = axisOf(schedule, operand.equation, p);
      if (form->coefficients[p].isConst(0) || a < 0)
        continue;
      int64_t tile = tileOf(a);
      if (tile <= 0 || !form->coefficients[p].isConst())
        return 0;
      std::optional<PositionTile> part =
          positionTile(equation, schedule.axes[a].in(operand.equation)->positions, p, tile);
      if (!part)
        return 0;
      elements += std::abs(form->coefficients[p].constValue()) * (part->size - 1);
    }
    return elements;
  };
  for (const LayoutDigit &digit : operand.digits)
    extents.push_back(digit.index < 0 ? tileOf(digit.axis) : span(indices[digit.index]));
  return extents;
}

std::vector<int64_t> stagedExtents(const BoundSchedule &bound, const Operand &operand,
                                   const Loops &loops) {
  return stagedExtents(bound.schedule, bound.equation(operand.equation), operand,
                       [&](AxisId axis) { return bound.valueOf(bound.tile(axis, loops)); });
}

CopyOrder copyOrder(const BoundSchedule &bound, const Operand &operand,
                    const std::vector<int64_t> &extents) {
  const TensorId tensor = bound.program.tensorOf(operand);
  const std::optional<FlatAccess> &access = bound.facts(operand.equation).accesses[operand.read];
  const auto rank = static_cast<int>(bound.program.tensor(tensor).shape.size());
  CopyOrder order;
  size_t fastest = 0;
  for (size_t d = 0; d < operand.digits.size(); ++d) {
    if (extents[d] <= 1)
      continue;
    const LayoutDigit &digit = operand.digits[d];
    const bool unit =
        digit.index >= 0
            ? digit.index + 1 == rank
            : access &&
                  access->stride[bound.use(digit.axis, operand.equation)->positions.back()].isConst(
                      1);
    if (unit || !order.sideBySide) {
      fastest = d;
      order.sideBySide = unit;
    }
  }
  order.digits.push_back(fastest);
  for (size_t d = operand.digits.size(); d-- > 0;)
    if (d != fastest)
      order.digits.push_back(d);
  return order;
}

std::optional<Loops> loopsOfEdge(const BoundSchedule &bound, TensorId tensor) {
  const int producer = bound.program.producer(tensor);
  const auto stores = bound.statements(LeafKind::Store, producer);
  const Loops *own = bound.facts(producer).reduces() && !stores.empty() ? &stores[0]->loops
                                                                        : bound.loopsOf(producer);
  if (!own)
    return std::nullopt;
  size_t common = 0;
  while (common < own->size() && (*own)[common]->kind != LoopKind::Unit &&
         (*own)[common]->kind != LoopKind::Lane)
    ++common;
  for (const Loops *reader : readersOf(bound, tensor))
    common = std::min(common, commonLoops(*own, *reader));
  return Loops(own->begin(), own->begin() + static_cast<ptrdiff_t>(common));
}

std::optional<int64_t> stagedStride(const BoundSchedule &bound, const Operand &operand,
                                    const std::vector<int64_t> &extents, int position) {
  const Equation &equation = bound.equation(operand.equation);
  const std::vector<NodeId> indices = indexOperands(equation.body[bound.program.nodeOf(operand)]);
  int64_t stride = 0, inner = 1;
  for (size_t d = operand.digits.size(); d-- > 0;) {
    const LayoutDigit &digit = operand.digits[d];
    if (digit.index < 0) {
      const AxisUse *use = bound.use(digit.axis, operand.equation);
      if (use && use->positions.back() == position)
        stride += inner;
    } else {
      const std::optional<AffineForm> form =
          affineForm(equation.body, indices[digit.index], static_cast<int>(equation.axes.size()));
      if (!form || !form->coefficients[position].isConst())
        return std::nullopt;
      stride += form->coefficients[position].constValue() * inner;
    }
    inner *= extents[d] + (d + 1 == operand.digits.size() ? operand.padElements : 0);
  }
  return stride;
}

} // namespace fusec::tiling

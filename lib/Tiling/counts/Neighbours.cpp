#include "Tiling/counts/Neighbours.h"

#include "Expr/TurnsOfGroup.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// The equation's axes in a group of turns of one Unroll loop.
class GroupOfTurns {
public:
  GroupOfTurns(const BoundSchedule &bound, int equation, AxisId axis, int64_t size)
      : bound(bound), equation(equation), axis(axis), size(size),
        turns(
            bound.equation(equation).body, bound.program.expr.symbols, size,
            [this](int32_t position) {
              const std::optional<Progress> own = ofPosition(position);
              crosses = crosses || !own;
              return own.value_or(Progress{});
            },
            [](const Scalar &) { return false; }) {}

  bool servesRead(NodeId read) {
    const Scalar &node = bound.equation(equation).body[read];
    std::vector<std::optional<Progress>> places;
    const std::vector<DimExpr> strides = stridesOf(bound.program.tensor(node.index).shape);
    for (NodeId index : indexOperands(node))
      places.push_back(turns.scaled(index, strides[places.size()]));
    const bool guarded = node.op == ScalarOp::ReadIf && !turns.isSame(node.args[0]);
    return !guarded && liesTogether(places);
  }

  bool servesStore(TensorId tensor) {
    std::vector<std::optional<Progress>> places;
    for (const DimExpr &stride : stridesOf(bound.program.tensor(tensor).shape)) {
      const std::optional<Progress> own = ofPosition(static_cast<int>(places.size()));
      const Progress step = turns.of(stride);
      places.push_back(
          own && (own->isSame() || stride.isConst())
              ? std::optional(Progress{own->isSame() ? 0 : own->step * stride.constValue(),
                                       own->multiple * step.multiple})
              : std::nullopt);
    }
    return liesTogether(places);
  }

private:
  /// The value of an axis of the equation; nullopt where the group's turns go over the end of a row.
  std::optional<Progress> ofPosition(int position) const {
    const AxisId a = bound.axisOf(equation, position);
    if (a != axis)
      return Progress{};
    const std::vector<int> &positions = bound.use(a, equation)->positions;
    const std::vector<Axis> &axes = bound.equation(equation).axes;
    DimExpr inner(1);
    for (size_t i = positions.size(); i-- > 0 && positions[i] != position;)
      inner = inner * axes[static_cast<size_t>(positions[i])].extent;
    std::optional<Progress> value = Progress{1, size};
    if (!inner.isConst(1))
      value = quotient(*value, turns.of(inner), size);
    if (value && position != positions.front())
      value = remainder(*value, turns.of(axes[static_cast<size_t>(position)].extent), size);
    return value;
  }

  bool liesTogether(const std::vector<std::optional<Progress>> &places) const {
    Progress sum{0, int64_t{1} << 20};
    for (const std::optional<Progress> &place : places) {
      if (!place)
        return false;
      sum = sum + *place;
    }
    return !crosses && turns.liesTogether(sum);
  }

  const BoundSchedule &bound;
  const int equation;
  const AxisId axis;
  const int64_t size;
  bool crosses = false; // an axis that was asked for is not the same sum in all turns
  TurnsOfGroup turns;
};

/// The part of a statement's turns along the loop's axis that no test or clamp of their own stands in front of: the
/// lowering makes a version of whole tiles, those below the innermost loop in order. A test against a multiple of the
/// group's size stands in no turn's way: lanes past the end of a sum's results are tested, all other loops clamped.
double shareInWholeTiles(const BoundSchedule &bound, int equation, AxisId axis, const Loops &loops,
                         int64_t size) {
  const DimExpr &extent = bound.schedule.axes[axis].extent;
  const std::vector<Symbol> &symbols = bound.program.expr.symbols;
  const AxisUse *use = bound.use(axis, equation);
  const LoopNode *lanes = innermost(loops, LoopKind::Lane);
  const bool onLanes = lanes && lanes->axis == axis,
             clamped = bound.facts(equation).reduces() && use && !use->reduction && !onLanes;
  if (!clamped && extent.divisibleBy(size, symbols))
    return 1;
  int64_t tile = 0;
  for (const LoopNode *loop : loops)
    if (loop->axis == axis && (loop->kind == LoopKind::Seq || loop->kind == LoopKind::Block))
      tile = loop->step;
  if (tile == 0) {
    const auto first = std::ranges::find(loops, axis, &LoopNode::axis);
    return extent == DimExpr(static_cast<int64_t>(bound.optTrip(**first)) * (*first)->step) ? 1 : 0;
  }
  if (extent.divisibleBy(tile, symbols))
    return 1;
  const int64_t elements = bound.valueOf(extent);
  return elements > 0 ? double(elements / tile * tile) / double(elements) : 0;
}

/// Calls `serves` with an axis and a number of turns for each that a loop of the statement allows, the largest first.
template <typename Serves>
TurnsTogether mostTurns(const BoundSchedule &bound, int equation, const Loops &loops, int64_t bytes,
                        const Serves &serves) {
  for (size_t i = loops.size(); i-- > 0;) {
    const LoopNode &loop = *loops[i];
    if (loop.kind != LoopKind::Unroll && loop.kind != LoopKind::Lane)
      break;
    if (loop.kind != LoopKind::Unroll || loop.step != 1 || loop.axis < 0)
      continue;
    const auto trip = static_cast<int64_t>(bound.optTrip(loop));
    const auto others = [&](int64_t size) {
      return std::ranges::all_of(loops, [&](const LoopNode *other) {
        return other == &loop || other->axis != loop.axis || other->step % size == 0;
      });
    };
    for (int64_t size = kWidestAccess / bytes; size > 1; size /= 2)
      if (trip % size == 0 && others(size) && serves(loop.axis, size))
        if (const double share = shareInWholeTiles(bound, equation, loop.axis, loops, size);
            share > 0)
          return {loop.axis, size, share};
  }
  return {};
}

} // namespace

/// False for a read whose elements are known not to lie side by side along a schedule's axis: most reads of most loops.
static bool mayLieTogether(const BoundSchedule &bound, const ReadPlace &read, const AxisUse &use) {
  const std::optional<FlatAccess> &access = bound.facts(read.equation).accesses[read.read];
  const std::vector<Axis> &axes = bound.equation(read.equation).axes;
  for (size_t i = use.positions.size(); access && i-- > 0;)
    if (const int position = use.positions[i]; !axes[position].extent.isConst(1))
      return access->stride[position].isConst(1);
  return true;
}

/// Whether `size` elements along an axis lie side by side in a buffer of such extents (stagedExtents).
static bool liesTogether(const Operand &operand, const std::vector<int64_t> &extents, AxisId axis,
                         int64_t size) {
  int64_t row = 1;
  for (size_t d = operand.digits.size(); d-- > 0;) {
    const LayoutDigit &digit = operand.digits[d];
    const bool last = d + 1 == operand.digits.size();
    if (digit.index >= 0 || digit.divide != 1 || digit.modulus != 0 ||
        last != (digit.axis == axis) || row % (last ? 1 : size) != 0)
      return false;
    row *= extents[d] + (last ? operand.padElements : 0);
  }
  return true;
}

TurnsTogether turnsOfRead(const BoundSchedule &bound, const ReadPlace &read, const Loops &loops,
                          const StagedExtents &staged) {
  const EquationFacts &facts = bound.facts(read.equation);
  const NodeId node = bound.program.nodeOf(read);
  const Operand *operand = bound.operand(read.equation, read.read);
  const auto copy =
      operand ? staged.find(OperandIndex(operand - bound.schedule.operands.data())) : staged.end();
  if (operand && copy == staged.end())
    return {};
  const int64_t bytes = bound.program.bytesOf(bound.program.tensorOf(read));
  return mostTurns(bound, read.equation, loops, bytes, [&](AxisId axis, int64_t size) {
    const AxisUse *use = bound.use(axis, read.equation);
    if (!use || !use->meets(facts.axes[node]))
      return false;
    if (operand)
      return liesTogether(*operand, copy->second, axis, size);
    return mayLieTogether(bound, read, *use) &&
           GroupOfTurns(bound, read.equation, axis, size).servesRead(node);
  });
}

TurnsTogether turnsOfStore(const BoundSchedule &bound, int equation, TensorId tensor,
                           const Loops &loops) {
  return mostTurns(bound, equation, loops, bound.program.bytesOf(tensor),
                   [&](AxisId axis, int64_t size) {
                     return bound.use(axis, equation) &&
                            GroupOfTurns(bound, equation, axis, size).servesStore(tensor);
                   });
}

double timeOfTurn(const TurnsTogether &together, int64_t elementBytes, bool ofEachLane) {
  constexpr double kBytesOfLane = 4;
  const auto access = [&](int64_t turns) {
    return std::max(1.0, ofEachLane ? double(turns * elementBytes) / kBytesOfLane : 1) /
           double(turns);
  };
  return together.share * access(together.turns) + (1 - together.share) * access(1);
}

bool variesByLane(const BoundSchedule &bound, const ReadPlace &read, const Loops &loops) {
  const LoopNode *lanes = innermost(loops, LoopKind::Lane);
  const AxisUse *use = lanes ? bound.use(lanes->axis, read.equation) : nullptr;
  return use && use->meets(bound.facts(read.equation).axes[bound.program.nodeOf(read)]);
}

bool readsDevice(const BoundSchedule &bound, const ReadPlace &read) {
  if (bound.reuse(read))
    return false;
  const Operand *operand = bound.operand(read.equation, read.read);
  return operand ? operand->level == MemLevel::Global
                 : bound.level(bound.program.tensorOf(read)) == MemLevel::Global;
}

} // namespace fusec::tiling

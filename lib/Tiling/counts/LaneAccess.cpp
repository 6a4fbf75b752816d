#include "Tiling/counts/LaneAccess.h"

#include "Gir/Passes.h"
#include "Tiling/schedule/PointEvaluator.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <cmath>

namespace fusec::tiling {

double elementsOf(const std::vector<int64_t> &extents) {
  double elements = 1;
  for (int64_t extent : extents)
    elements *= double(extent);
  return elements;
}

double loadsOfStage(const BoundSchedule &bound, const Operand &operand,
                    const std::vector<int64_t> &extents, const Target &target) {
  const EquationFacts &reader = bound.facts(operand.equation);
  const double elements = elementsOf(extents), vectors = elements / bound.schedule.lanes;
  const CopyOrder order = copyOrder(bound, operand, extents);
  // Places that no formula names are gathers, which are counted by themselves.
  const double loads = !order.sideBySide && reader.accesses[operand.read] ? elements : vectors;
  size_t row = operand.digits.size() - 1; // of the buffer
  while (row > 0 && extents[row] == 1)
    --row;
  if (order.digits[0] == row)
    return loads + vectors;
  const auto rows = double(rowsOfTurnedCopy(extents[row], bound.schedule.lanes));
  if (rows == 1)
    return loads + elements * kStoreCyclesALane * target.core.fmaPorts;
  return loads + elements / rows + vectors * std::ceil(std::log2(rows));
}

/// Turns of the innermost such loop whose axis ends in a position that lies side by side.
template <typename F>
static double turnsAlong(const BoundSchedule &bound, int equation, const Loops &loops,
                         F sideBySide) {
  for (size_t i = loops.size(); i-- > 0;) {
    const LoopNode *loop = loops[i];
    if (loop->kind == LoopKind::Seq || loop->kind == LoopKind::Block)
      break;
    const AxisUse *use = bound.use(loop->axis, equation);
    if (loop->kind == LoopKind::Unroll && loop->step == 1 && use &&
        sideBySide(use->positions.back()))
      return std::min(bound.optTrip(*loop), double(bound.schedule.lanes));
  }
  return 1;
}

double turnsStored(const BoundSchedule &bound, int equation, const Loops &loops) {
  const Equation &e = bound.equation(equation);
  int last = e.numSpatial - 1;
  while (last > 0 && e.axes[last].extent.isConst(1))
    --last;
  return turnsAlong(bound, equation, loops, [&](int position) { return position == last; });
}

double turnsRead(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis,
                 const Loops &loops) {
  const EquationFacts &facts = bound.facts(read.equation);
  const std::optional<FlatAccess> &access = facts.accesses[read.read];
  const AxisUse *lanes = bound.use(laneAxis, read.equation);
  if (!access || !lanes || bound.operand(read.equation, read.read) ||
      facts.equation.body[facts.reads[read.read]].op != ScalarOp::Read)
    return 1;
  // Lanes that lie closer are not read in rows.
  const DimExpr &distance = access->stride[lanes->positions.back()];
  if (distance.isConst() && std::abs(distance.constValue()) <= bound.schedule.lanes / 2)
    return 1;
  return turnsAlong(bound, read.equation, loops,
                    [&](int position) { return access->stride[position].isConst(1); });
}

/// True if vectors along a flat axis of a size that a run tells may hold the end of one row and the start of another
/// that lies elsewhere: their places are worked out lane by lane.
static bool rowsEndWithinVectors(const BoundSchedule &bound, int equation, const AxisUse &use,
                                 const FlatAccess &access) {
  const std::vector<Axis> &axes = bound.equation(equation).axes;
  if (std::ranges::all_of(use.positions, [&](int p) { return axes[p].extent.isConst(); }))
    return false;
  DimExpr row(1);
  for (size_t i = use.positions.size(); i-- > 1;) {
    const int position = use.positions[i], next = use.positions[i - 1];
    row = row * axes[position].extent;
    if (row.isConst() && row.constValue() % bound.schedule.lanes == 0)
      return false;
    if (access.stride[next] != access.stride[position] * axes[position].extent)
      return true;
  }
  return false;
}

bool isDigitOfVectors(const Equation &e, NodeId id, int lanes) {
  const Scalar &s = e.body[id];
  return (s.op == ScalarOp::FloorDiv || s.op == ScalarOp::FloorMod) &&
         e.body[s.args[0]].op == ScalarOp::Axis && e.body[s.args[1]].op == ScalarOp::Const &&
         e.body[s.args[1]].imm % lanes == 0;
}

/// True if an index is the same for all lanes of a vector along the axis: it depends on the last of these positions
/// only by a quotient whose divisor holds whole vectors, as the parts of a running sum. Vectors begin at multiples of
/// their lanes, as those of generated schedules do.
/// `left`: nodes that are looked at; what takes more is taken for none.
static bool isOneInVectors(const Equation &e, NodeId index, const AxisUse &use, int lanes,
                           int &left) {
  const Body &body = e.body;
  const Scalar &s = body[index];
  const bool isLane = s.op == ScalarOp::Axis && use.meets(uint64_t{1} << s.index),
             startsWhole = use.positions.size() == 1 ||
                           e.axes[use.positions.back()].extent.divisibleBy(lanes, {});
  if (--left < 0)
    return false;
  if (s.op == ScalarOp::Axis)
    return !isLane || (s.index != use.positions.back() && startsWhole);
  if (s.op == ScalarOp::FloorDiv && startsWhole && isDigitOfVectors(e, index, lanes))
    return true;
  return std::ranges::all_of(
      s.args, [&](NodeId operand) { return isOneInVectors(e, operand, use, lanes, left); });
}

bool lanesLieApart(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis,
                   const StagedExtents *staged) {
  const AxisUse *use = bound.use(laneAxis, read.equation);
  if (!use)
    return false;
  const int position = use->positions.back();
  if (const Operand *operand = bound.operand(read.equation, read.read)) {
    if (!staged || operand->level != MemLevel::Shared)
      return false;
    const auto extents = staged->find(OperandIndex(operand - bound.schedule.operands.data()));
    if (extents == staged->end())
      return false;
    const std::optional<int64_t> stride = stagedStride(bound, *operand, extents->second, position);
    return !stride || (*stride != 0 && *stride != 1);
  }
  const EquationFacts &facts = bound.facts(read.equation);
  const bool isOneForAll = !use->meets(facts.axes[facts.reads[read.read]]);
  if (isOneForAll) // a broadcast, or a GPU's one request, wherever divisions find it
    return false;
  const std::optional<FlatAccess> &access = facts.accesses[read.read];
  if (!access)
    return !std::ranges::all_of(
        indexOperands(facts.equation.body[facts.reads[read.read]]), [&](NodeId index) {
          int left = 64; // an index of a sum or two
          return isOneInVectors(facts.equation, index, *use, bound.schedule.lanes, left);
        });
  return !(access->stride[position].isConst(0) || access->stride[position].isConst(1)) ||
         (staged && rowsEndWithinVectors(bound, read.equation, *use, *access));
}

bool placesAreDivided(const BoundSchedule &bound, const ReadPlace &read, AxisId laneAxis) {
  const AxisUse *use = bound.use(laneAxis, read.equation);
  const std::optional<FlatAccess> &access = bound.facts(read.equation).accesses[read.read];
  return use && access && !bound.operand(read.equation, read.read) &&
         rowsEndWithinVectors(bound, read.equation, *use, *access);
}

LanePattern::LanePattern(const BoundSchedule &bound, int equation, std::vector<int> positions,
                         Written written)
    : bound(bound), facts(bound.facts(equation)), positions(std::move(positions)),
      written(written) {
  for (int position : this->positions)
    laneAxes |= uint64_t{1} << position;
  const auto known = [this](NodeId a) { return bool(constants[a]); };
  for (const Scalar &s : facts.equation.body.nodes)
    switch (s.op) {
    case ScalarOp::Const: constants.push_back(true); break;
    case ScalarOp::Axis:
      constants.push_back(((laneAxes | written.axes) >> s.index & 1) != 0);
      break;
    case ScalarOp::Dim:
    case ScalarOp::Step:
    case ScalarOp::State:
    case ScalarOp::Part:
    case ScalarOp::Read:
    case ScalarOp::ReadIf: constants.push_back(false); break;
    default: constants.push_back(std::ranges::all_of(s.args, known));
    }
}

/// Whether the node is one number for all lanes and a constant for each.
bool LanePattern::isSum(NodeId id) const {
  if (constants[id] || isUniform(id))
    return true;
  const Scalar &s = facts.equation.body[id];
  const bool adds = s.op == ScalarOp::Add || s.op == ScalarOp::Sub;
  const bool scales = s.op == ScalarOp::Mul && std::ranges::any_of(s.args, [this](NodeId a) {
                        return facts.equation.body[a].op == ScalarOp::Const;
                      });
  return (adds || scales) && std::ranges::all_of(s.args, [this](NodeId a) { return isSum(a); });
}

/// The parts of a conjunction that differ between lanes; nullopt where such a part is not known. What all lanes share
/// chooses between the image and a vector of padding.
std::optional<std::vector<NodeId>> LanePattern::testsOfLanes(NodeId predicate) const {
  std::vector<NodeId> tests, open{predicate};
  while (!open.empty()) {
    const NodeId id = open.back();
    const Scalar &s = facts.equation.body[id];
    open.pop_back();
    if (isUniform(id))
      continue;
    if (constants[id] && written.lanes)
      tests.push_back(id);
    else if (s.op == ScalarOp::And)
      open.insert(open.end(), s.args.begin(), s.args.end());
    else
      return std::nullopt;
  }
  return tests;
}

std::optional<double> LanePattern::loads(NodeId read, int64_t lanes) const {
  const Scalar &s = facts.equation.body[read];
  const std::vector<NodeId> indices = indexOperands(s);
  const bool sums = std::ranges::all_of(indices, [this](NodeId i) { return isSum(i); });
  const auto tests =
      s.op == ScalarOp::ReadIf ? testsOfLanes(s.args[0]) : std::optional(std::vector<NodeId>{});
  if (!sums || !tests)
    return std::nullopt;

  std::vector<NodeId> roots = indices;
  roots.insert(roots.end(), tests->begin(), tests->end());
  PointEvaluator values(facts.equation.body, roots, 1, bound.program.symbols);
  const std::vector<int64_t> strides = bound.program.stridesOf(s.index);
  std::vector<int64_t> extents;
  int64_t elements = 1;
  for (int position : positions) {
    extents.push_back(bound.valueOf(facts.equation.axes[position].extent));
    elements *= extents.back();
  }
  // A shuffle repeats itself along the axis or moves on: a few of its vectors tell of all.
  constexpr int64_t kLooksAt = 4;
  const int64_t vectors = std::max<int64_t>(1, elements / lanes),
                looksAt = std::min(vectors, kLooksAt);
  std::vector<int64_t> axes(facts.equation.axes.size(), 0), places;
  double loaded = 0;
  for (int64_t look = 0; look < looksAt; ++look) {
    places.clear();
    const int64_t first = look * vectors / looksAt * lanes;
    for (int64_t lane = 0; lane < lanes && first + lane < elements; ++lane) {
      int64_t value = first + lane;
      for (size_t i = positions.size(); i-- > 0;) {
        axes[positions[i]] = value % extents[i];
        value /= extents[i];
      }
      values.at(axes, 0);
      if (std::any_of(tests->begin(), tests->end(), [&](NodeId t) { return values[t] == 0; }))
        continue;
      int64_t place = 0;
      for (size_t d = 0; d < indices.size(); ++d)
        place += values[indices[d]] * strides[d];
      places.push_back(place);
    }
    std::ranges::sort(places);
    int64_t windows = 0;
    for (size_t i = 0, begin = 0; i < places.size(); ++i)
      if (i == 0 || places[i] >= places[begin] + lanes) {
        begin = i;
        ++windows;
      }
    if (windows * 2 > static_cast<int64_t>(places.size()) && places.size() > 1)
      return std::nullopt;
    loaded += double(windows);
  }
  return loaded / double(looksAt);
}

std::optional<LanePattern> lanePattern(const BoundSchedule &bound, int equation,
                                       const Loops &loops) {
  // What Emitter::emitSeq writes out: few iterations of few statements, about four for each of the innermost loop.
  constexpr double kShortSeq = 8, kMostWritten = 600.0 / 4;
  const LoopNode *lanes = innermost(loops, LoopKind::Lane);
  const AxisId axis = lanes ? lanes->axis : AxisId();
  const AxisUse *use = bound.use(axis, equation);
  if (!use)
    return std::nullopt;
  LanePattern::Written written;
  uint64_t stays = 0;
  double inside = 1; // iterations of the loops within, but the lanes'
  for (size_t i = loops.size(); i-- > 0;) {
    const LoopNode *loop = loops[i];
    const double trip = bound.optTrip(*loop);
    const bool isLong = (loop->kind == LoopKind::Seq && trip > kShortSeq) ||
                        (loop->kind == LoopKind::Block && trip > 1);
    if (loop->axis == axis && isLong)
      return std::nullopt;
    if (loop->axis == axis && loop->kind == LoopKind::Seq && trip * inside >= kMostWritten)
      written.lanes = false;
    inside *= loop->kind == LoopKind::Lane ? 1 : trip;
    const AxisUse *along = bound.use(loop->axis, equation);
    for (size_t p = 0; along && p < along->positions.size(); ++p)
      (isLong ? stays : written.axes) |= uint64_t{1} << along->positions[p];
  }
  written.axes &= ~stays;
  return LanePattern(bound, equation, use->positions, written);
}

} // namespace fusec::tiling

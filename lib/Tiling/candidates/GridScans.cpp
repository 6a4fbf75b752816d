// Schedules of scans whose steps all blocks take together (schedule/Schedule.h).
//
// The equations of a step fall into phases, and those of a phase into parts that stand side by side, each with blocks
// of its own: maps that only read each other's element at their own place, with them the sums that they read at their
// own places. An LSTM's cell, whose sums have the gates as an axis beside the states, is one part, and two layers of it
// as one wavefront are
//
//   carry 0; barrier; seq step:1 { block x1:32 { .. compute e0 .. compute e1; compute e2 }
//                                  block x4:32 { .. compute e3 .. compute e4; compute e5 } }
//
// with one barrier a step. Sums and cells stay in the registers of the threads that make and read them; states lie in
// device memory, where all blocks find them behind the step's barrier. Or the sums come a phase before, and are spread
// over more blocks:
//
//   carry 0; barrier; seq step:1 { block m0:8 { .. compute e0 .. } block m3:8 { .. compute e3 .. }
//                                  barrier; block x1:256 { compute e1; compute e2 } .. }
//
// On a GPU a block copies the states that its sums read to shared memory first: eight units, and four gates in each,
// would read them again. By the model lstm10 takes 2 to 4 % longer for the block's barrier, and asks for a twelfth of
// the sectors.
//
// A CPU's block makes some vectors along the last axis, weights in panels, so that a core finds its part of them in its
// own cache in each step.
#include "Tiling/candidates/Candidates.h"
#include "Tiling/candidates/LoopTemplates.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

/// How a step's equations fall into phases, and those of a phase into parts. What reads more of another one's value
/// than belongs to its own point comes a phase later; what reads no more, and is of the same phase, is of the same
/// part.
struct StepParts {
  std::vector<int> phases; // of each equation
  std::vector<int> parts;  // of each equation: the first one of its part
  /// For a reduction in a part with maps, the dimensions of its result that the maps' axes longer than 1 are, in their
  /// order. All elements along the other dimensions belong to a point.
  std::vector<std::vector<int>> points;
};

/// The dimensions that a map reads by its axes longer than 1, in their order: at its own point, whatever the indices of
/// the others. None where an axis has no such dimension.
std::vector<int> ownDims(const ExprProgram &program, const Equation &map, NodeId read) {
  const Scalar &node = map.body[read];
  const Shape &shape = program.tensors[node.index].shape;
  const std::vector<NodeId> indices = indexOperands(node);
  std::vector<int> dims;
  for (size_t a = 0; a < map.axes.size(); ++a) {
    if (map.axes[a].extent.isConst(1))
      continue;
    size_t d = 0;
    while (d < shape.size() &&
           (map.body[indices[d]].op != ScalarOp::Axis ||
            map.body[indices[d]].index != static_cast<int>(a) || shape[d] != map.axes[a].extent))
      ++d;
    if (d == shape.size())
      return {};
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

/// True if `dims` are all dimensions longer than 1, in their order.
bool areAll(const std::vector<int> &dims, const Shape &shape) {
  size_t longer = 0;
  for (const DimExpr &extent : shape)
    longer += !extent.isConst(1);
  return dims.size() == longer && std::ranges::is_sorted(dims);
}

/// `withSums`: maps may be of one part with reductions; else with maps alone.
StepParts partsOfStep(const ScheduledProgram &program, bool withSums) {
  const std::vector<const Equation *> &equations = program.equations;
  StepParts step;
  step.phases.assign(equations.size(), 0);
  step.points.resize(equations.size());
  std::map<TensorId, size_t> makers;
  for (size_t e = 0; e < equations.size(); ++e) {
    step.parts.push_back(static_cast<int>(e));
    std::map<size_t, std::vector<int>> own; // makers, and the dimensions read by the own axes
    for (NodeId read : program.facts[e].reads) {
      const TensorId t = equations[e]->body[read].index;
      auto found = makers.find(t);
      if (found == makers.end())
        continue;
      const size_t maker = found->second;
      std::vector<int> dims;
      if (equations[e]->kind == EquationKind::Map)
        dims = ownDims(program.expr, *equations[e], read);
      bool isOwn = false;
      if (equations[maker]->kind == EquationKind::Map)
        isOwn = !dims.empty() && areAll(dims, program.expr.tensors[t].shape);
      else if (withSums && equations[maker]->kind == EquationKind::Reduction)
        isOwn = !dims.empty() && (step.points[maker].empty() || step.points[maker] == dims) &&
                own.try_emplace(maker, dims).first->second == dims;
      if (isOwn)
        own.try_emplace(maker, dims);
      step.phases[e] = std::max(step.phases[e], step.phases[maker] + (isOwn ? 0 : 1));
    }
    for (auto &[maker, dims] : own) {
      if (step.phases[maker] != step.phases[e])
        continue;
      const int from = step.parts[e], to = step.parts[maker];
      std::ranges::replace(step.parts, std::max(from, to), std::min(from, to));
      if (equations[maker]->kind == EquationKind::Reduction)
        step.points[maker] = std::move(dims);
    }
    for (TensorId t : equations[e]->outputs)
      makers[t] = e;
  }
  return step;
}

class GridScanBuilder {
public:
  /// `each`: outputs that a unit of a GPU makes of a sum at once, vectors of them that a block does on a CPU. `rows`:
  /// on a CPU, of the last axis but one at most, such as a batch: each vector of weights is read once for all of them.
  GridScanBuilder(const ScheduledProgram &program, const Target &target, int64_t each, int64_t rows)
      : program(program), target(target), each(each), mostRows(rows),
        vectorLanes(target.vectorLanes), equations(program.equations) {
    schedule.name = GeneratorName("rounds");
    schedule.units = target.unitsOf(256);
    schedule.lanes = target.lanes;
  }

  /// The schedule; nullopt where an equation cannot be spread over blocks.
  std::optional<Schedule> run(const StepParts &step) {
    const int last = *std::ranges::max_element(step.phases);
    LoopNode loop = ScheduleBuilder::loop(LoopKind::Seq, kStepAxis, 1);
    for (int phase = 0; phase <= last; ++phase) {
      if (phase > 0)
        loop.children.push_back(LeafNode{LeafKind::Barrier});
      for (int first = 0; first < static_cast<int>(equations.size()); ++first) {
        if (step.phases[first] != phase || step.parts[first] != first)
          continue;
        std::vector<int> maps, sums;
        for (int e = first; e < static_cast<int>(equations.size()); ++e)
          if (step.parts[e] == first)
            (equations[e]->kind == EquationKind::Map ? maps : sums).push_back(e);
        std::vector<TreeNode> nodes = maps.empty() ? sum(first) : part(maps, sums, step);
        if (nodes.empty())
          return std::nullopt;
        loop.children.push_back(std::move(nodes[0]));
      }
    }
    schedule.tree = {LeafNode{.kind = LeafKind::Carry, .carry = 0}, LeafNode{LeafKind::Barrier},
                     std::move(loop)};
    const std::vector<ScanCarry> &carries = program.scan->carries;
    if (mostRows > 1 && !usesRows)
      return std::nullopt; // as with fewer rows
    if (std::ranges::any_of(carries, [](const ScanCarry &carry) { return carry.final >= 0; })) {
      schedule.tree.push_back(LeafNode{LeafKind::Barrier});
      schedule.tree.push_back(LeafNode{.kind = LeafKind::Carry, .carry = 2});
    }
    for (TensorId t : readInRegisters(BoundSchedule(schedule, program)))
      setLevel(schedule, t, MemLevel::Register);
    return std::move(schedule);
  }

private:
  /// Axes longer than 1.
  std::vector<int> longAxes(int map) const {
    std::vector<int> positions;
    for (size_t p = 0; p < equations[map]->axes.size(); ++p)
      if (!equations[map]->axes[p].extent.isConst(1))
        positions.push_back(static_cast<int>(p));
    return positions;
  }

  /// What the maps run over: on a GPU all axes as one, on a CPU an axis each, so that no address needs a division.
  std::vector<AxisId> pointAxes(const std::vector<int> &maps) {
    const std::vector<int> points = longAxes(maps[0]);
    std::vector<AxisId> axes;
    for (size_t first = 0, end; first < points.size(); first = end) {
      end = vectorLanes ? first + 1 : points.size();
      ScheduleAxis axis;
      axis.name = "x" + std::to_string(maps[0]);
      if (end < points.size())
        axis.name += "." + std::to_string(first);
      axis.extent = DimExpr(1);
      for (size_t i = first; i < end; ++i)
        axis.extent = axis.extent * equations[maps[0]]->axes[points[i]].extent;
      for (int map : maps) {
        const std::vector<int> own = longAxes(map);
        axis.uses.push_back(
            {false,
             {own.begin() + std::ptrdiff_t(first), own.begin() + std::ptrdiff_t(end)},
             {map}});
      }
      axes.push_back(AxisId(schedule.axes.size()));
      schedule.axes.push_back(std::move(axis));
    }
    return axes;
  }

  std::vector<TreeNode> part(const std::vector<int> &maps, const std::vector<int> &sums,
                             const StepParts &step) {
    const std::vector<AxisId> axes = pointAxes(maps);
    if (axes.empty())
      return {};
    stageable = kMostStaged;
    int64_t vectors = each;
    for (int e : sums)
      if (const int64_t atOnce = each / ofPoint(e, step.points[e]); atOnce > 0)
        vectors = std::min(vectors, atOnce);
    vectors = std::min(vectors, vectorsAlong(axes.back()));
    tileRows = axes.size() > 1 ? rowsAlong(axes[axes.size() - 2]) : 1;
    for (int e : sums) {
      const int64_t atOnce = areAtOnce(e, step.points[e], vectors) ? ofPoint(e, step.points[e]) : 1;
      if (tileRows > 1 && tileRows * vectors * atOnce > target.vectorRegisters * 3 / 4)
        return {};
    }
    usesRows = usesRows || 2 * tileRows > mostRows; // more than the candidate with half as many
    std::vector<TreeNode> stages, inside;
    for (int e : sums) {
      std::vector<TreeNode> nodes = vectorLanes ? columns(e, vectors, step.points[e], axes)
                                                : rows(e, step.points[e], axes.back());
      if (nodes.empty())
        return {};
      for (TreeNode &node : nodes)
        (isStage(node) ? stages : inside).push_back(std::move(node));
    }
    std::vector<TreeNode> computes;
    for (int e : maps)
      computes.push_back(ScheduleBuilder::leaf(LeafKind::Compute, e));
    const AxisId x = axes.back();
    std::vector<LoopNode> blocks, walk;
    for (size_t a = 0; a + 1 < axes.size(); ++a)
      blocks.push_back(
          ScheduleBuilder::loop(LoopKind::Block, axes[a], a + 2 == axes.size() ? tileRows : 1));
    if (vectorLanes) {
      if (tileRows > 1)
        walk.push_back(ScheduleBuilder::loop(LoopKind::Unroll, axes[axes.size() - 2], 1));
      blocks.push_back(ScheduleBuilder::loop(LoopKind::Block, x, vectors * schedule.lanes));
      // Beside sums whose vectors are registers, in the same ones.
      walk.push_back(ScheduleBuilder::loop(sums.empty() ? LoopKind::Seq : LoopKind::Unroll, x,
                                           schedule.lanes));
      walk.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, 1));
    } else if (sums.empty()) {
      blocks.push_back(
          ScheduleBuilder::loop(LoopKind::Block, x, int64_t{schedule.units} * schedule.lanes));
      blocks.push_back(ScheduleBuilder::loop(LoopKind::Unit, x, schedule.lanes));
      walk.push_back(ScheduleBuilder::loop(LoopKind::Lane, x, 1));
    } else {
      walk.push_back(ScheduleBuilder::loop(LoopKind::Unroll, x, 1));
      inside.push_back(ScheduleBuilder::nest(std::move(walk), std::move(computes)));
      return {inBlock(x, std::move(stages), std::move(inside))};
    }
    inside.push_back(ScheduleBuilder::nest(std::move(walk), std::move(computes)));
    return {ScheduleBuilder::nest(std::move(blocks), std::move(inside))};
  }

  static bool isStage(const TreeNode &node) { return node.leaf(LeafKind::Stage) != nullptr; }

  /// Units make `each` points of `x` apiece, behind what the block stages for all of them.
  TreeNode inBlock(AxisId x, std::vector<TreeNode> stages, std::vector<TreeNode> inside) const {
    stages.push_back(
        ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Unit, x, each)}, std::move(inside)));
    return ScheduleBuilder::nest({ScheduleBuilder::loop(LoopKind::Block, x, each * schedule.units)},
                                 std::move(stages));
  }

  /// A sum that no map of its phase reads.
  std::vector<TreeNode> sum(int e) {
    if (equations[e]->kind != EquationKind::Reduction)
      return {};
    if (vectorLanes)
      return columns(e, each, {}, {});
    stageable = kMostStaged;
    std::vector<TreeNode> nodes = rows(e, {}, AxisId());
    if (nodes.empty())
      return {};
    const auto last = std::ranges::find_if(nodes, [](const TreeNode &n) { return !isStage(n); });
    std::vector<TreeNode> stages(nodes.begin(), last), inside(last, nodes.end());
    const AxisId m = inside.front().loop()->axis;
    return {inBlock(m, std::move(stages), std::move(inside))};
  }

  int64_t vectorsAlong(AxisId x) const {
    const int64_t extent = schedule.axes[x].extent.evaluate(program.symbols).value_or(INT32_MAX);
    return std::max<int64_t>(1, roundUp(extent, schedule.lanes) / schedule.lanes);
  }

  /// Rows of a tile, of which all have as many: none of those that a run tells.
  int64_t rowsAlong(AxisId axis) const {
    const DimExpr &extent = schedule.axes[axis].extent;
    int64_t most = vectorLanes && extent.isConst() ? mostRows : 1;
    while (most > 1 && extent.constValue() % most != 0)
      --most;
    return most;
  }

  /// Elements of a sum's result that belong to one point of the maps that read it, such as an LSTM cell's gates; many
  /// where their number is symbolic.
  int64_t ofPoint(int e, const std::vector<int> &points) const {
    const View view = makeView(program, target, e, -1, points);
    int64_t elements = 1;
    for (const std::vector<int> &group : view.spatial) {
      const DimExpr extent = view.extent(group);
      elements =
          std::min<int64_t>(elements * (extent.isConst() ? view.opt(group) : INT32_MAX), INT32_MAX);
    }
    return elements;
  }

  /// Whether registers hold what belongs to so many vectors of points.
  bool areAtOnce(int e, const std::vector<int> &points, int64_t vectors) const {
    return ofPoint(e, points) * vectors <= each;
  }

  /// On a CPU: lanes along the last axis, `vectors` of them. `points`: dimensions of the result for which the part
  /// around has the axes `axes`, and blocks; none: all, in blocks of its own. What belongs to a point is summed at once
  /// where there are registers for it.
  std::vector<TreeNode> columns(int e, int64_t vectors, const std::vector<int> &points,
                                const std::vector<AxisId> &axes) {
    View view = makeView(program, target, e, -1, points);
    if (view.reduction.empty() || (view.spatial.empty() && points.empty()))
      return {};
    const size_t others = points.empty() ? 0 : view.spatial.size();
    const bool atOnce = !points.empty() && areAtOnce(e, points, vectors);
    for (int p : points)
      view.spatial.push_back({p});
    Schedule piece = columnLoops(view, vectors);
    std::vector<LoopNode> around;
    std::vector<TreeNode> inside = std::move(piece.tree);
    std::map<AxisId, AxisId> same;
    for (size_t g = 0; g < view.spatial.size(); ++g) {
      LoopNode loop = std::move(*inside[0].loop());
      inside = std::move(loop.children);
      loop.children.clear();
      if (points.empty())
        loop.kind = LoopKind::Block;
      else if (atOnce)
        loop.kind = LoopKind::Unroll;
      if (points.empty() || g < others)
        around.push_back(std::move(loop));
      else
        same[loop.axis] = axes[g - others];
    }
    if (atOnce) {
      // What is summed at once lies side by side: one run of addresses, and no lines that share a cache's set.
      for (Operand &operand : piece.operands)
        std::stable_partition(operand.digits.begin(), operand.digits.end() - 1,
                              [&](const LayoutDigit &digit) {
                                return std::ranges::none_of(around, [&](const LoopNode &loop) {
                                  return loop.axis == digit.axis;
                                });
                              });
      unroll(inside, around);
    } else if (!around.empty())
      inside = {ScheduleBuilder::nest(std::move(around), std::move(inside))};
    if (tileRows > 1 && !points.empty()) {
      const auto row = std::ranges::find(same, axes[axes.size() - 2],
                                         [](const auto &both) { return both.second; });
      unroll(inside, {ScheduleBuilder::loop(LoopKind::Unroll, row->first, 1)});
    }
    piece.tree = std::move(inside);
    return spliceLoops(schedule, std::move(piece), std::to_string(e), same);
  }

  /// Puts the loops around each loop over a tile's vectors.
  static void unroll(std::vector<TreeNode> &nodes, const std::vector<LoopNode> &loops) {
    for (TreeNode &node : nodes) {
      if (LoopNode *loop = node.loop(); loop && loop->kind != LoopKind::Unroll)
        unroll(loop->children, loops);
      else if (!loops.empty())
        node = ScheduleBuilder::nest(loops, {std::move(node)});
    }
  }

  /// On a GPU: lanes along the innermost reduced axis; a unit makes `each` outputs at once, which share what they read
  /// of the states, and all that belong to `each` points. `x`: the axis of the points, which has loops around.
  std::vector<TreeNode> rows(int e, const std::vector<int> &points, AxisId x) {
    constexpr int64_t kMostSums = 32; // at once, in registers
    const View view = makeView(program, target, e, -1, points);
    if (view.reduction.empty() || (view.spatial.empty() && points.empty()))
      return {};
    ScheduleBuilder b(view, schedule.units, schedule.lanes);
    const AxisId m =
        b.addSpatial("m", points.empty() ? view.spatial : std::vector<std::vector<int>>{points});
    if (!points.empty() && ofPoint(e, points) * each > kMostSums)
      return {};
    std::vector<LoopNode> all;
    for (size_t g = 0; !points.empty() && g < view.spatial.size(); ++g)
      all.push_back(ScheduleBuilder::loop(
          LoopKind::Unroll, b.addSpatial("g" + std::to_string(g), {view.spatial[g]}), 1));
    all.push_back(ScheduleBuilder::loop(LoopKind::Unroll, m, 1));
    std::vector<LoopNode> reduce;
    for (size_t g = 0; g < view.reduction.size(); ++g) {
      const bool last = g + 1 == view.reduction.size();
      const AxisId k = b.addReduction("k" + std::to_string(g), {view.reduction[g]});
      reduce.push_back(ScheduleBuilder::loop(LoopKind::Seq, k, last ? schedule.lanes : 1));
      if (last) {
        reduce.insert(reduce.end(), all.begin(), all.end());
        reduce.push_back(ScheduleBuilder::loop(LoopKind::Lane, k, 1));
      }
    }
    auto ofAll = [&](LeafKind kind) {
      return ScheduleBuilder::nest(all, {ScheduleBuilder::leaf(kind, e)});
    };
    b.schedule.tree = stages(b, m);
    for (TreeNode node :
         {ofAll(LeafKind::Init),
          ScheduleBuilder::nest(reduce, {ScheduleBuilder::leaf(LeafKind::Compute, e)}),
          ofAll(LeafKind::Combine), ofAll(LeafKind::Store)})
      b.schedule.tree.push_back(std::move(node));
    std::map<AxisId, AxisId> same;
    if (x >= 0)
      same[m] = x;
    return spliceLoops(schedule, std::move(b.schedule), std::to_string(e), same);
  }

  /// Stages of what all points of the axis `m` read, such as states: otherwise each unit of the block, and each gate of
  /// an LSTM, would read it again.
  std::vector<TreeNode> stages(ScheduleBuilder &b, AxisId m) {
    std::vector<TreeNode> out;
    for (const ReadInfo &read : b.view.reads) {
      if (read.constant || read.guarded || read.dependsOn(b.positionsOf(m)))
        continue;
      std::vector<LayoutDigit> digits;
      DimExpr elements(1);
      for (AxisId a{0}; a < AxisId(b.schedule.axes.size()); ++a)
        if (read.dependsOn(b.positionsOf(a))) {
          digits.push_back({a});
          elements = elements * b.schedule.axes[a].extent;
        }
      if (digits.empty() || !elements.isConst() || elements.constValue() > stageable)
        continue;
      const int64_t bytes = elements.constValue() * read.elementBytes;
      if (bytes > stageable)
        continue;
      stageable -= bytes;
      out.push_back(
          LeafNode{.kind = LeafKind::Stage, .operand = b.stage(read, std::move(digits), 0)});
    }
    return out;
  }

  const ScheduledProgram &program;
  const Target &target;
  const int64_t each, mostRows;
  int64_t tileRows = 1; // in the part at hand
  bool usesRows = false;
  const bool vectorLanes;
  const std::vector<const Equation *> &equations;
  Schedule schedule;
  static constexpr int64_t kMostStaged =
      16 << 10;          // bytes of a block: the rest is for what rounds hold
  int64_t stageable = 0; // bytes, in a block of the part
};

} // namespace

Candidates gridScanCandidates(const ScheduledProgram &program, const Target &target) {
  constexpr size_t kMostEquations =
      80; // a block finds its part among those of a phase by tests in each other
  const size_t count = program.equations.size();
  if (count == 0 || count > kMostEquations)
    return {};
  std::set<TensorId> states;
  for (const ScanCarry &carry : program.scan->carries)
    if (!states.insert(carry.next).second)
      return {};
  const StepParts apart = partsOfStep(program, false), together = partsOfStep(program, true);
  struct Tile {
    int64_t each, rows;
  };
  const std::vector<Tile> tiles = target.vectorLanes
                                      ? std::vector<Tile>{{8, 1}, {4, 1}, {4, 2}, {4, 4}}
                                      : std::vector<Tile>{{1, 1}, {4, 1}, {8, 1}};
  Candidates out;
  for (const auto [each, rows] : tiles) {
    bool found = false;
    for (const StepParts *step : {&together, &apart}) {
      // On a CPU sums by themselves are spread over no more blocks.
      if ((step == &apart && found && target.vectorLanes) ||
          (step == &together && together.parts == apart.parts))
        continue;
      if (std::optional<Schedule> s = GridScanBuilder(program, target, each, rows).run(*step)) {
        out.push_back(std::move(*s));
        found = true;
      }
    }
  }
  return out;
}

} // namespace fusec::tiling

// An SE block's y[c, hw] = x[c, hw] * gate[c] by the loops of the mean that reads x in the first phase:
//
//   block c:1 { init e0 seq k:256 { unit k:32 { unroll k:32 { lane k:1 { compute e0 } } } } combine e0 store e0 }
//   ..
//   barrier
//   block c':1 { seq k':256 { unit k':32 { unroll k':32 { lane k':1 { compute e6 } } } } }
//
// where the axes of both stand for the same addresses of x.
#include "Tiling/search/MatchingLoops.h"

#include "Tiling/candidates/ScheduleBuilder.h"
#include "Tiling/schedule/LiveReads.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/search/JoinPhases.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

using Loops = std::vector<const TreeNode *>; // around a statement, outermost first

bool findCompute(std::span<const TreeNode> nodes, int equation, Loops &around) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop) {
      if (node.leaf == LeafKind::Compute && node.target == equation)
        return true;
      continue;
    }
    around.push_back(&node);
    if (findCompute(node.children, equation, around))
      return true;
    around.pop_back();
  }
  return false;
}

/// Loops around the equation's Compute; nothing where it has none, or stands beside other parts of its phase: their
/// blocks come first or behind it.
std::optional<Loops> loopsAround(const Schedule &schedule, int equation) {
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree))
    if (Loops around; !isPack(phase) && findCompute(phase, equation, around))
      return around;
  return std::nullopt;
}

/// How an address moves with a schedule's axis: runs of elements at equal distances, outermost first.
using Runs = std::vector<std::pair<DimExpr, DimExpr>>; // elements, distance

Runs runsOf(const Equation &e, const FlatAccess &access, std::span<const int> positions) {
  Runs runs;
  for (int p : positions) {
    const DimExpr &extent = e.axes[static_cast<size_t>(p)].extent,
                  &stride = access.stride[static_cast<size_t>(p)];
    if (extent.isConst(1))
      continue;
    if (!runs.empty() && runs.back().second == extent * stride)
      runs.back() = {runs.back().first * extent, stride};
    else
      runs.emplace_back(extent, stride);
  }
  return runs;
}

/// A read that all threads do where the statement is done, of memory that keeps it; nothing for others.
std::optional<FlatAccess> plainAccess(const Schedule &schedule, const ExprProgram &program,
                                      const ReadPlace &place) {
  const Equation &e = *scheduledEquations(program)[static_cast<size_t>(place.equation)];
  const NodeId read = readsOf(e)[static_cast<size_t>(place.read)];
  if (place.rank != 0 || !e.states.empty() || e.body[read].op != ScalarOp::Read ||
      (e.kind != EquationKind::Map && e.kind != EquationKind::Reduction) ||
      operandOf(schedule, place.equation, place.read))
    return std::nullopt;
  std::optional<FlatAccess> access = flatAccess(e, read, program);
  return access && access->rests.empty() ? access : std::nullopt;
}

/// The loops that count the elements which a thread holds have as many steps in every block.
bool haveConstantTrips(const Schedule &schedule, const Equation &equation, const ReadPlace &place,
                       const Loops &loops) {
  const std::vector<const TreeNode *> counting = loopsOfHeld(schedule, equation, place, loops);
  for (const TreeNode *loop : counting) {
    const DimExpr &extent = schedule.axes[static_cast<size_t>(loop->axis)].extent;
    // Loops in order end with the axis, and units past its end have nothing to do.
    auto isCut = [&](const TreeNode *tile) {
      return !(extent.isConst() && extent.constValue() % tile->step == 0);
    };
    const TreeNode *around = nullptr;
    bool pastEnd = false;
    for (const TreeNode *outer : loops) {
      if (outer == loop)
        break;
      if (outer->axis != loop->axis)
        continue;
      pastEnd = pastEnd || (around && outer->loop == LoopKind::Unit && isCut(around));
      around = outer;
    }
    if (!around ? !extent.isConst() : loop->loop == LoopKind::Seq && (pastEnd || isCut(around)))
      return false;
  }
  return true;
}

bool areShared(const Schedule &schedule, const Loops &loops) {
  auto has = [&](LoopKind kind) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const TreeNode *loop) { return loop->loop == kind; });
  };
  return has(LoopKind::Lane) && (schedule.units == 1 || has(LoopKind::Unit));
}

TensorId tensorAt(const ExprProgram &program, const ReadPlace &place) {
  const Equation &e = *scheduledEquations(program)[static_cast<size_t>(place.equation)];
  return e.body[readsOf(e)[static_cast<size_t>(place.read)]].index;
}

} // namespace

std::string obstacleAcross(const Schedule &schedule, const ExprProgram &program, const Kept &kept) {
  if (kept.level != MemLevel::Register)
    return "lies in registers";
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::optional<FlatAccess> access = plainAccess(schedule, program, kept.read),
                                  first = plainAccess(schedule, program, *kept.from);
  const TensorId tensor = tensorAt(program, kept.read);
  if (!access || !first || tensorAt(program, *kept.from) != tensor ||
      access->constant != first->constant)
    return "is what a map or a sum reads of one tensor at equal places, not staged";
  if (const Kept *before = keptAt(schedule, *kept.from); before && isHeld(schedule, *before))
    return "comes from a read that is done, not held itself";
  const std::vector<int> starts = phaseStarts(schedule);
  auto phaseOf = [&](int equation) {
    return std::upper_bound(starts.begin(), starts.end(), equation) - starts.begin();
  };
  if (const int producer = producerOf(equations, tensor);
      producer >= 0 && phaseOf(producer) >= phaseOf(kept.from->equation))
    return "has been made in a phase before";
  const std::optional<Loops> loops = loopsAround(schedule, kept.read.equation),
                             same = loopsAround(schedule, kept.from->equation);
  if (!loops || !same || loops->size() != same->size() || !areShared(schedule, *loops))
    return "is walked by the same loops over blocks, units and lanes";
  const Equation &e = *equations[static_cast<size_t>(kept.read.equation)],
                 &from = *equations[static_cast<size_t>(kept.from->equation)];
  std::vector<std::pair<AxisId, AxisId>> pairs;
  for (size_t i = 0; i < loops->size(); ++i) {
    const TreeNode &a = *(*loops)[i], &b = *(*same)[i];
    if (a.loop != b.loop || a.step != b.step || a.axis < 0 || b.axis < 0)
      return "is walked by the same loops over blocks, units and lanes";
    pairs.emplace_back(a.axis, b.axis);
  }
  for (const auto &[a, b] : pairs) {
    const ScheduleAxis &axis = schedule.axes[static_cast<size_t>(a)],
                       &other = schedule.axes[static_cast<size_t>(b)];
    const AxisUse *use = axis.in(kept.read.equation), *used = other.in(kept.from->equation);
    const bool paired = std::all_of(pairs.begin(), pairs.end(), [&, a = a, b = b](const auto &p) {
      return (p.first == a) == (p.second == b);
    });
    if (!use || !used || !paired || axis.extent != other.extent ||
        runsOf(e, *access, use->positions) != runsOf(from, *first, used->positions))
      return "is walked by loops over the same elements";
  }
  if (!haveConstantTrips(schedule, e, kept.read, *loops))
    return "is done so many times as a constant says";
  return "";
}

namespace {

/// Axes of a schedule, and those of a map that its read's address moves along alike.
using AlikeAxes = std::vector<std::pair<AxisId, std::vector<int>>>;

/// Whether that is so of another read of the map, too.
bool areAlike(const Schedule &before, const Equation &from, int equation, const FlatAccess &first,
              const Equation &map, const FlatAccess &access, const AlikeAxes &axes) {
  return std::all_of(axes.begin(), axes.end(), [&](const auto &alike) {
    const AxisUse &use = *before.axes[static_cast<size_t>(alike.first)].in(equation);
    return runsOf(map, access, alike.second) == runsOf(from, first, use.positions);
  });
}

/// Of all axes of the loops; nothing where some of the map are left.
std::optional<AlikeAxes> alikeAxes(const Schedule &before, const Equation &from, int equation,
                                   const FlatAccess &first, const Loops &loops, const Equation &map,
                                   const FlatAccess &access) {
  std::vector<int> left;
  for (size_t p = 0; p < map.axes.size(); ++p)
    if (!map.axes[p].extent.isConst(1))
      left.push_back(static_cast<int>(p));
  AlikeAxes out;
  for (const TreeNode *loop : loops) {
    if (std::any_of(out.begin(), out.end(), [&](const auto &o) { return o.first == loop->axis; }))
      continue;
    const AxisUse *use =
        loop->axis < 0 ? nullptr : before.axes[static_cast<size_t>(loop->axis)].in(equation);
    if (!use)
      return std::nullopt;
    const Runs wanted = runsOf(from, first, use->positions);
    std::vector<int> found;
    for (size_t begin = 0; found.empty() && begin < left.size(); ++begin)
      for (size_t end = begin + 1; found.empty() && end <= left.size(); ++end) {
        const std::span<const int> run(left.data() + begin, end - begin);
        if (run.back() - run.front() + 1 == static_cast<int>(run.size()) &&
            runsOf(map, access, run) == wanted)
          found.assign(run.begin(), run.end());
      }
    if (found.empty())
      return std::nullopt;
    std::erase_if(left, [&](int p) { return std::count(found.begin(), found.end(), p) != 0; });
    out.emplace_back(loop->axis, std::move(found));
  }
  if (!left.empty())
    return std::nullopt;
  return out;
}

} // namespace

std::optional<SameWalk> sameWalk(const Schedule &before, const ExprProgram &beforeEquations,
                                 const ExprProgram &map) {
  const std::vector<const Equation *> equations = scheduledEquations(beforeEquations),
                                      maps = scheduledEquations(map);
  if (maps.size() != 1 || maps[0]->kind != EquationKind::Map)
    return std::nullopt;
  const Equation &e = *maps[0];
  SameWalk out;
  out.schedule.name = "map";
  out.schedule.units = before.units;
  out.schedule.lanes = before.lanes;
  for (int equation = static_cast<int>(equations.size()) - 1; equation >= 0; --equation) {
    const Equation &from = *equations[static_cast<size_t>(equation)];
    const std::optional<Loops> loops = loopsAround(before, equation);
    if (!loops || !areShared(before, *loops))
      continue;
    std::optional<AlikeAxes> axes; // by the first read
    for (int f = 0; f < static_cast<int>(readsOf(from).size()); ++f)
      for (int r = 0; r < static_cast<int>(readsOf(e).size()); ++r) {
        const ReadPlace source{equation, 0, f}, reader{0, 0, r};
        const Tensor &tensor = map.tensors[tensorAt(map, reader)],
                     &sourceTensor = beforeEquations.tensors[tensorAt(beforeEquations, source)];
        // What that phase makes itself it need not read from memory: its own loops decide where it finds that.
        if (tensor.name != sourceTensor.name ||
            producerOf(equations, tensorAt(beforeEquations, source)) >= 0)
          continue;
        const std::optional<FlatAccess> access = plainAccess(out.schedule, map, reader),
                                        first = plainAccess(before, beforeEquations, source);
        if (!access || !first || access->constant != first->constant ||
            !haveConstantTrips(before, from, source, *loops))
          continue;
        if (std::any_of(out.held.begin(), out.held.end(),
                        [&](const auto &h) { return h.first == reader; }))
          continue;
        if (axes && !areAlike(before, from, equation, *first, e, *access, *axes))
          continue;
        if (!axes) {
          axes = alikeAxes(before, from, equation, *first, *loops, e, *access);
          if (!axes)
            continue;
          std::vector<TreeNode> nest;
          for (const TreeNode *loop : *loops) {
            const auto at = std::find_if(axes->begin(), axes->end(),
                                         [&](const auto &a) { return a.first == loop->axis; });
            nest.push_back(
                Builder::loop(loop->loop, static_cast<AxisId>(at - axes->begin()), loop->step));
          }
          for (const auto &[axis, positions] : *axes)
            out.schedule.axes.push_back({"x" + std::to_string(out.schedule.axes.size()),
                                         {{false, positions, {0}}},
                                         before.axes[static_cast<size_t>(axis)].extent});
          out.schedule.tree = {
              Builder::nest(std::move(nest), {Builder::leaf(LeafKind::Compute, 0)})};
        }
        out.held.emplace_back(reader, source);
      }
    if (!out.held.empty())
      return out;
  }
  return std::nullopt;
}

} // namespace fusec::tiling

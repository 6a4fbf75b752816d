// An SE block's y[c, hw] = x[c, hw] * gate[c] by the loops of the mean that reads x in the first phase:
//
//   block c:1 { init e0 seq k:256 { unit k:32 { unroll k:32 { lane k:1 { compute e0 } } } } combine e0 store e0 }
//   ..
//   barrier
//   block c':1 { seq k':256 { unit k':32 { unroll k':32 { lane k':1 { compute e6 } } } } }
//
// where the axes of both stand for the same addresses of x.
#include "Tiling/search/MatchingLoops.h"
#include "Tiling/schedule/PersistentReads.h"

#include "Tiling/candidates/ScheduleBuilder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// An equation, and the address of one of its reads.
struct AddressedRead {
  const Equation &equation;
  const FlatAccess &access;
};

/// Axes of a schedule, and those of a map that its read's address moves along alike.
using AlikeAxes = std::vector<std::pair<AxisId, std::vector<int>>>;

/// Whether the addresses of `from`, which stands at `equation`, and of the map move alike along all of the axes.
bool areAlike(const BoundSchedule &before, int equation, const AddressedRead &from,
              const AddressedRead &map, const AlikeAxes &axes) {
  return std::ranges::all_of(axes, [&](const auto &alike) {
    const AxisUse &use = *before.use(alike.first, equation);
    return runsOf(map.equation, map.access, alike.second) ==
           runsOf(from.equation, from.access, use.positions);
  });
}

/// All axes of the loops around `from`, which stands at `equation`; nothing where axes of the map are left.
std::optional<AlikeAxes> alikeAxes(const BoundSchedule &before, int equation, const Loops &loops,
                                   const AddressedRead &from, const AddressedRead &map) {
  std::vector<int> left;
  for (size_t p = 0; p < map.equation.axes.size(); ++p)
    if (!map.equation.axes[p].extent.isConst(1))
      left.push_back(static_cast<int>(p));
  AlikeAxes out;
  for (const LoopNode *loop : loops) {
    if (std::ranges::any_of(out, [&](const auto &o) { return o.first == loop->axis; }))
      continue;
    const AxisUse *use = before.use(loop->axis, equation);
    if (!use)
      return std::nullopt;
    const Runs wanted = runsOf(from.equation, from.access, use->positions);
    std::vector<int> found;
    for (size_t begin = 0; found.empty() && begin < left.size(); ++begin)
      for (size_t end = begin + 1; found.empty() && end <= left.size(); ++end) {
        const std::span<const int> run(left.data() + begin, end - begin);
        if (run.back() - run.front() + 1 == static_cast<int>(run.size()) &&
            runsOf(map.equation, map.access, run) == wanted)
          found.assign(run.begin(), run.end());
      }
    if (found.empty())
      return std::nullopt;
    std::erase_if(left, [&](int p) { return std::ranges::count(found, p) != 0; });
    out.emplace_back(loop->axis, std::move(found));
  }
  if (!left.empty())
    return std::nullopt;
  return out;
}

} // namespace

std::optional<MatchedLoops> matchLoops(const BoundSchedule &bound, const ExprProgram &map) {
  const Schedule nothing; // says of the map that all is read from memory
  const BoundSchedule boundMap(nothing, map);
  if (boundMap.program.equations.size() != 1 || boundMap.facts(0).form != EquationForm::Map)
    return std::nullopt;
  const Schedule &before = bound.schedule;
  const Equation &e = boundMap.equation(0);
  MatchedLoops out;
  out.schedule.name = GeneratorName("map");
  out.schedule.units = before.units;
  out.schedule.lanes = before.lanes;
  for (int equation = bound.numEquations() - 1; equation >= 0; --equation) {
    const Equation &from = bound.equation(equation);
    const Loops *loops = loopsAround(bound, equation);
    if (!loops || !areShared(before, *loops))
      continue;
    std::optional<AlikeAxes> axes; // by the first read
    for (int f = 0; f < static_cast<int>(bound.facts(equation).reads.size()); ++f)
      for (int r = 0; r < static_cast<int>(boundMap.facts(0).reads.size()); ++r) {
        const ReadPlace source{equation, 0, f}, reader{0, 0, r};
        const Tensor &tensor = map.tensors[boundMap.program.tensorOf(reader)],
                     &sourceTensor = bound.program.tensor(bound.program.tensorOf(source));
        // What that phase makes itself it need not read from memory: its own loops decide where it finds that.
        if (tensor.name != sourceTensor.name ||
            bound.program.producer(bound.program.tensorOf(source)) >= 0)
          continue;
        const std::optional<FlatAccess> access = plainAccess(boundMap, reader),
                                        first = plainAccess(bound, source);
        if (!access || !first || access->constant != first->constant ||
            !haveConstantTrips(bound, source, *loops))
          continue;
        if (std::ranges::any_of(out.held, [&](const auto &h) { return h.first == reader; }))
          continue;
        const AddressedRead made{from, *first}, asked{e, *access};
        if (axes && !areAlike(bound, equation, made, asked, *axes))
          continue;
        if (!axes) {
          axes = alikeAxes(bound, equation, *loops, made, asked);
          if (!axes)
            continue;
          std::vector<LoopNode> nest;
          for (const LoopNode *loop : *loops) {
            const auto at = std::find_if(axes->begin(), axes->end(),
                                         [&](const auto &a) { return a.first == loop->axis; });
            nest.push_back(
                ScheduleBuilder::loop(loop->kind, AxisId(at - axes->begin()), loop->step));
          }
          for (const auto &[axis, positions] : *axes)
            out.schedule.axes.push_back({"x" + std::to_string(out.schedule.axes.size()),
                                         {{false, positions, {0}}},
                                         before.axes[axis].extent});
          out.schedule.tree = {ScheduleBuilder::nest(
              std::move(nest), {ScheduleBuilder::leaf(LeafKind::Compute, 0)})};
        }
        out.held.emplace_back(reader, source);
      }
    if (!out.held.empty())
      return out;
  }
  return std::nullopt;
}

} // namespace fusec::tiling

// The rules of reads that are not done, since their threads have the values.
#include "Tiling/verify/Rules.h"

#include "Expr/Cascade.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Phases.h"

#include <algorithm>

namespace fusec::tiling {

std::string obstacleInGridScan(const BoundSchedule &bound, const ReadPlace &place,
                               const Loops &loops) {
  const Equation &e = bound.equation(place.equation);
  const Scalar &read = e.body[bound.node(place)];
  const TensorId tensor = read.index;
  const Equation *scan = bound.scan();
  auto isAround = [&](auto &&matches) { return std::any_of(loops.begin(), loops.end(), matches); };
  if (!scan || !isAround([](const LoopNode *loop) { return loop->axis == kStepAxis; }) ||
      !bound.gridScan())
    return "stands in rounds";
  if (!e.states.empty() || e.kind == EquationKind::Opaque || e.kind == EquationKind::Scatter)
    return "is of a map or a sum";
  if (isPreviousState(*scan, tensor) || isNextState(*scan, tensor) || bound.producer(tensor) >= 0)
    return "finds what no step writes";
  for (NodeId id : e.body.reachable(read.args))
    if (const ScalarOp op = e.body[id].op;
        op == ScalarOp::Step || op == ScalarOp::Read || op == ScalarOp::ReadIf)
      return "finds the same in each step";
  if (const Operand *operand = bound.operand(place.equation, place.read);
      operand && operand->level == MemLevel::Shared)
    return "is no operand's that is staged";
  for (LoopKind kind : {LoopKind::Unit, LoopKind::Lane})
    if (!isAround([&](const LoopNode *loop) { return loop->kind == kind; }) &&
        (kind == LoopKind::Lane || bound.schedule().units > 1))
      return "is done by each unit and lane for itself";
  if (persistentElements(bound, place, loops) == 0)
    return "is done so many times as a constant says";
  return "";
}

namespace {

/// Why a read that is kept from one of an earlier phase cannot be; empty where it can.
std::string obstacleAcross(const BoundSchedule &bound, const ReusedRead &kept) {
  const Schedule &schedule = bound.schedule();
  if (kept.level != MemLevel::Register)
    return "lies in registers";
  const std::optional<FlatAccess> access = plainAccess(bound, kept.read),
                                  first = plainAccess(bound, *kept.from);
  const TensorId tensor = bound.tensor(kept.read);
  if (!access || !first || bound.tensor(*kept.from) != tensor ||
      access->constant != first->constant)
    return "is what a map or a sum reads of one tensor at equal places, not staged";
  if (const ReusedRead *before = bound.reuse(*kept.from); before && isPersistent(schedule, *before))
    return "comes from a read that is done, not held itself";
  const std::vector<int> starts = phaseStarts(schedule);
  auto phaseOf = [&](int equation) {
    return std::upper_bound(starts.begin(), starts.end(), equation) - starts.begin();
  };
  if (const int producer = bound.producer(tensor);
      producer >= 0 && phaseOf(producer) >= phaseOf(kept.from->equation))
    return "has been made in a phase before";
  const Loops *loops = loopsAround(bound, kept.read.equation),
              *same = loopsAround(bound, kept.from->equation);
  if (!loops || !same || loops->size() != same->size() || !areShared(schedule, *loops))
    return "is walked by the same loops over blocks, units and lanes";
  const Equation &e = bound.equation(kept.read.equation),
                 &from = bound.equation(kept.from->equation);
  std::vector<std::pair<AxisId, AxisId>> pairs;
  for (size_t i = 0; i < loops->size(); ++i) {
    const LoopNode &a = *(*loops)[i], &b = *(*same)[i];
    if (a.kind != b.kind || a.step != b.step || a.axis < 0 || b.axis < 0)
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
  if (!haveConstantTrips(bound, kept.read, *loops))
    return "is done so many times as a constant says";
  return "";
}

/// The rules of reads that are held which the schedule breaks.
std::vector<std::string> persistentReadProblems(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule();
  std::vector<std::string> problems;
  if (!hasPersistentReads(schedule))
    return problems;
  for (const ReusedRead &kept : schedule.kept) {
    if (!isPersistent(schedule, kept))
      continue;
    if (*kept.from != kept.read) {
      if (const std::string why = obstacleAcross(bound, kept); !why.empty())
        problems.push_back("what keep " + print(kept.read) + " holds from phase to phase " + why);
      continue;
    }
    const Loops *loops = bound.loopsOf(kept.read.equation);
    const std::string why =
        loops ? obstacleInGridScan(bound, kept.read, *loops) : "stands in rounds";
    if (!why.empty())
      problems.push_back("what keep " + print(kept.read) + " holds from round to round " + why);
  }
  return problems;
}

} // namespace

std::vector<std::string> reuseProblems(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule();
  auto exists = [&](const ReadPlace &place) {
    if (place.equation < 0 || place.equation >= bound.numEquations())
      return false;
    const Equation &e = bound.equation(place.equation);
    return place.rank >= 0 && place.rank <= std::max(0, lastRank(e)) && place.read >= 0 &&
           place.read < static_cast<int>(bound.facts(place.equation).reads.size());
  };
  std::vector<std::string> problems;
  for (const ReusedRead &kept : schedule.kept) {
    const std::string who = "keep " + print(kept.read);
    if (!exists(kept.read) || (kept.from && !exists(*kept.from)))
      problems.push_back(who + " names reads of equations");
    if (kept.level == MemLevel::Global)
      problems.push_back(who + " says register or shared");
    if (std::count_if(schedule.kept.begin(), schedule.kept.end(),
                      [&](const ReusedRead &other) { return other.read == kept.read; }) != 1)
      problems.push_back(who + " stands once");
  }
  if (problems.empty())
    problems = persistentReadProblems(bound);
  return problems;
}

} // namespace fusec::tiling

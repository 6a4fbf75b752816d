// The rules of reads that are not done, since their threads have the values.
#include "Tiling/verify/Rules.h"

#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/verify/RuleChecker.h"

#include <algorithm>

namespace fusec::tiling {

static constexpr const char *kConstantTrips =
    "is done as often as a constant says, given symbolic sizes in ";

std::string obstacleInGridScan(const BoundSchedule &bound, const ReadPlace &place,
                               const Loops &loops) {
  const Equation &e = bound.equation(place.equation);
  const Scalar &read = e.body[bound.program.nodeOf(place)];
  const TensorId tensor = read.index;
  const Equation *scan = bound.scan();
  if (!scan || !innermost(loops, kStepAxis) || !bound.gridScan())
    return "stands in rounds, given none around it";
  if (!bound.facts(place.equation).isPlain())
    return message(bound, "is of a map or a sum, given e", place.equation, ", which is neither");
  if (isPreviousState(*scan, tensor) || isNextState(*scan, tensor) ||
      bound.program.producer(tensor) >= 0)
    return message(bound, "finds what no step writes, given ", bound.program.tensor(tensor).name);
  for (NodeId id : e.body.reachable(read.args))
    if (const ScalarOp op = e.body[id].op;
        op == ScalarOp::Step || op == ScalarOp::Read || op == ScalarOp::ReadIf)
      return "finds the same in each step, given an index that the step or another read makes";
  if (const Operand *operand = bound.operand(place.equation, place.read);
      operand && operand->level == MemLevel::Shared)
    return message(bound, "is not staged, given ", *operand);
  for (LoopKind kind : {LoopKind::Unit, LoopKind::Lane})
    if (!innermost(loops, kind) && (kind == LoopKind::Lane || bound.schedule.units > 1))
      return message(bound, "is done by each unit and lane for itself, given no ", name(kind),
                     " loop around it");
  if (persistentElements(bound, place, loops) == 0)
    return message(bound, kConstantTrips, loops);
  return "";
}

namespace {

/// Why a read that is kept from one of an earlier phase cannot be; empty where it can.
std::string obstacleAcross(const BoundSchedule &bound, const ReusedRead &kept) {
  const Schedule &schedule = bound.schedule;
  if (kept.level != MemLevel::Register)
    return message(bound, "lies in registers, given ", kept.level);
  const std::optional<FlatAccess> access = plainAccess(bound, kept.read),
                                  first = plainAccess(bound, *kept.from);
  const TensorId tensor = bound.program.tensorOf(kept.read);
  if (!access || !first || bound.program.tensorOf(*kept.from) != tensor ||
      access->constant != first->constant)
    return message(bound,
                   "is what maps or sums read of one tensor at equal places, not staged, given ",
                   bound.program.tensor(tensor).name, " and ",
                   bound.program.tensor(bound.program.tensorOf(*kept.from)).name, " there");
  if (const ReusedRead *before = bound.reuse(*kept.from); before && isPersistent(schedule, *before))
    return message(bound, "comes from a read that is done, not held itself, given ", *before);
  const std::vector<int> starts = phaseStarts(schedule);
  auto phaseOf = [&](int equation) {
    return std::upper_bound(starts.begin(), starts.end(), equation) - starts.begin();
  };
  if (const int producer = bound.program.producer(tensor);
      producer >= 0 && phaseOf(producer) >= phaseOf(kept.from->equation))
    return message(bound, "has been made in a phase before, given e", producer, " behind it");
  const Loops *loops = loopsAround(bound, kept.read.equation),
              *same = loopsAround(bound, kept.from->equation);
  auto alike = [](const LoopNode *a, const LoopNode *b) {
    return a->kind == b->kind && a->step == b->step && a->axis >= 0 && b->axis >= 0;
  };
  if (!loops || !same || !std::ranges::equal(*loops, *same, alike) || !areShared(schedule, *loops))
    return message(bound, "is walked by the same loops over blocks, units and lanes, given ",
                   loops ? *loops : Loops(), ", and ", same ? *same : Loops());
  const Equation &e = bound.equation(kept.read.equation),
                 &from = bound.equation(kept.from->equation);
  std::vector<std::pair<AxisId, AxisId>> pairs;
  for (size_t i = 0; i < loops->size(); ++i)
    pairs.emplace_back((*loops)[i]->axis, (*same)[i]->axis);
  for (const auto &[a, b] : pairs) {
    const ScheduleAxis &axis = schedule.axes[a], &other = schedule.axes[b];
    const AxisUse *use = axis.in(kept.read.equation), *used = other.in(kept.from->equation);
    const bool paired = std::ranges::all_of(
        pairs, [&, a = a, b = b](const auto &p) { return (p.first == a) == (p.second == b); });
    if (!use || !used || !paired || axis.extent != other.extent ||
        runsOf(e, *access, use->positions) != runsOf(from, *first, used->positions))
      return message(bound, "is walked by loops over the same elements, given ", axis, " and ",
                     other);
  }
  if (!haveConstantTrips(bound, kept.read, *loops))
    return message(bound, kConstantTrips, *loops);
  return "";
}

/// The rules of reads that are held which the schedule breaks.
void checkPersistentReads(const BoundSchedule &bound, RuleChecker &broken) {
  const Schedule &schedule = bound.schedule;
  if (!hasPersistentReads(schedule))
    return;
  for (const ReusedRead &kept : schedule.kept) {
    if (!isPersistent(schedule, kept))
      continue;
    if (*kept.from != kept.read) {
      const std::string why = obstacleAcross(bound, kept);
      broken.require(why.empty(), "what ", kept, " holds from phase to phase ", why);
      continue;
    }
    const Loops *loops = bound.loopsOf(kept.read.equation);
    const std::string why = loops ? obstacleInGridScan(bound, kept.read, *loops)
                                  : "stands in rounds, given no compute of its equation";
    broken.require(why.empty(), "what ", kept, " holds from round to round ", why);
  }
}

} // namespace

std::vector<std::string> reuseProblems(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule;
  auto exists = [&](const ReadPlace &place) {
    if (place.equation < 0 || place.equation >= bound.numEquations())
      return false;
    const EquationFacts &facts = bound.facts(place.equation);
    return place.rank >= 0 && place.rank < facts.ranks() && place.read >= 0 &&
           place.read < static_cast<int>(facts.reads.size());
  };
  RuleChecker broken(bound);
  for (const ReusedRead &kept : schedule.kept) {
    broken.require(exists(kept.read) && (!kept.from || exists(*kept.from)), kept,
                   " names reads that equations have, given ",
                   exists(kept.read) && kept.from ? *kept.from : kept.read, ", which none has");
    broken.require(kept.level != MemLevel::Global, kept, " is in register or shared, given global");
    const auto lines = std::ranges::count(schedule.kept, kept.read, &ReusedRead::read);
    broken.require(lines == 1, "keep ", kept.read, " stands once, given ", lines, " times");
  }
  if (broken.none())
    checkPersistentReads(bound, broken);
  return broken.list();
}

} // namespace fusec::tiling

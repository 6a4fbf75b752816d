// The rules of reads that are not done, since their threads have the values.
#include "Tiling/verify/Rules.h"

#include "Expr/Cascade.h"
#include "Tiling/schedule/ElementWalk.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/schedule/ReadReuse.h"
#include "Tiling/schedule/Statements.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

std::string obstacleInGridScan(const Schedule &schedule, const ExprProgram &program,
                               const std::vector<const Equation *> &equations,
                               const ReadPlace &place, const std::vector<const TreeNode *> &loops) {
  const Equation &e = *equations[static_cast<size_t>(place.equation)];
  const Scalar &read = e.body[readsOf(e)[static_cast<size_t>(place.read)]];
  const TensorId tensor = read.index;
  const Equation *scan = scanOf(program);
  auto isAround = [&](auto &&matches) { return std::any_of(loops.begin(), loops.end(), matches); };
  if (!scan || !isAround([](const TreeNode *loop) { return loop->axis == kStepAxis; }) ||
      !hasGridScan(schedule))
    return "stands in rounds";
  if (!e.states.empty() || e.kind == EquationKind::Opaque || e.kind == EquationKind::Scatter)
    return "is of a map or a sum";
  const bool isState =
      std::any_of(scan->carries.begin(), scan->carries.end(), [&](const ScanCarry &carry) {
        return carry.previous == tensor || carry.next == tensor;
      });
  if (isState || producerOf(equations, tensor) >= 0)
    return "finds what no step writes";
  for (NodeId id : e.body.reachable(read.args))
    if (const ScalarOp op = e.body[id].op;
        op == ScalarOp::Step || op == ScalarOp::Read || op == ScalarOp::ReadIf)
      return "finds the same in each step";
  if (const Operand *operand = operandOf(schedule, place.equation, place.read);
      operand && operand->level == MemLevel::Shared)
    return "is no operand's that is staged";
  for (LoopKind kind : {LoopKind::Unit, LoopKind::Lane})
    if (!isAround([&](const TreeNode *loop) { return loop->loop == kind; }) &&
        (kind == LoopKind::Lane || schedule.units > 1))
      return "is done by each unit and lane for itself";
  if (persistentElements(schedule, e, place, loops) == 0)
    return "is done so many times as a constant says";
  return "";
}

namespace {

/// Why a read that is kept from one of an earlier phase cannot be; empty where it can.
std::string obstacleAcross(const Schedule &schedule, const ExprProgram &program,
                           const ReusedRead &kept) {
  if (kept.level != MemLevel::Register)
    return "lies in registers";
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::optional<FlatAccess> access = plainAccess(schedule, program, kept.read),
                                  first = plainAccess(schedule, program, *kept.from);
  const TensorId tensor = tensorAt(program, kept.read);
  if (!access || !first || tensorAt(program, *kept.from) != tensor ||
      access->constant != first->constant)
    return "is what a map or a sum reads of one tensor at equal places, not staged";
  if (const ReusedRead *before = findReuse(schedule, *kept.from);
      before && isPersistent(schedule, *before))
    return "comes from a read that is done, not held itself";
  const std::vector<int> starts = phaseStarts(schedule);
  auto phaseOf = [&](int equation) {
    return std::upper_bound(starts.begin(), starts.end(), equation) - starts.begin();
  };
  if (const int producer = producerOf(equations, tensor);
      producer >= 0 && phaseOf(producer) >= phaseOf(kept.from->equation))
    return "has been made in a phase before";
  const std::optional<std::vector<const TreeNode *>> loops =
                                                         loopsAround(schedule, kept.read.equation),
                                                     same =
                                                         loopsAround(schedule, kept.from->equation);
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

/// The rules of reads that are held which the schedule breaks.
std::vector<std::string> persistentReadProblems(const Schedule &schedule,
                                                const ExprProgram &program) {
  std::vector<std::string> problems;
  if (!hasPersistentReads(schedule))
    return problems;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::map<int, std::vector<const TreeNode *>> computes = computesOf(schedule.tree);
  for (const ReusedRead &kept : schedule.kept) {
    if (!isPersistent(schedule, kept))
      continue;
    if (*kept.from != kept.read) {
      if (const std::string why = obstacleAcross(schedule, program, kept); !why.empty())
        problems.push_back("what keep " + print(kept.read) + " holds from phase to phase " + why);
      continue;
    }
    const auto at = computes.find(kept.read.equation);
    const std::string why = at == computes.end() ? "stands in rounds"
                                                 : obstacleInGridScan(schedule, program, equations,
                                                                      kept.read, at->second);
    if (!why.empty())
      problems.push_back("what keep " + print(kept.read) + " holds from round to round " + why);
  }
  return problems;
}

} // namespace

std::vector<std::string> reuseProblems(const Schedule &schedule, const ExprProgram &program) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  auto exists = [&](const ReadPlace &place) {
    if (place.equation < 0 || place.equation >= static_cast<int>(equations.size()))
      return false;
    const Equation &e = *equations[static_cast<size_t>(place.equation)];
    return place.rank >= 0 && place.rank <= std::max(0, lastRank(e)) && place.read >= 0 &&
           place.read < static_cast<int>(readsOf(e).size());
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
    problems = persistentReadProblems(schedule, program);
  return problems;
}

} // namespace fusec::tiling

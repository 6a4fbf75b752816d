// The kept list of a schedule. With two nests along a row of x, the second one needs no memory:
//
//   keep e1.r0 register from e0.r0
//   tree { block m:8 { unit m:1 {
//     init e0  seq v:128 { unroll v:32 { lane v:1 { compute e0 } } }  combine e0      # sum of x[m, v]
//     seq w:128 { unroll w:32 { lane w:1 { compute e1 } } } } } }                     # y[m, w] = x[m, w] / sum[m]
//
// The list comes from trying: the schedule is lowered with a number on each read, Gir's rules keep what they find room
// for, and what they kept in all branches (full and cut tiles) is wanted from then on, until a try keeps exactly what
// was wanted. The kernel is made by the same steps, so that it does what the list says, and what the model counts
// (counts/MemoryRequests.h, counts/CountWork.h) needs the list alone.
#include "Tiling/search/ChooseReuse.h"

#include "Cost/Occupancy.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/space/Generate.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace fusec {

using namespace tiling;

namespace {

/// Some value is fetched twice, or stored and fetched: else a lowering would find nothing to keep.
bool mayKeep(const BoundSchedule &bound) {
  if (std::ranges::count_if(bound.statements(), [](const Statement &s) {
        return s.leaf->kind == LeafKind::Compute;
      }) < 2)
    return false;
  if (bound.scan()) // its states are stored in one step and fetched in the next one
    return true;
  std::map<TensorId, int> fetched;
  std::set<TensorId> stored;
  for (const EquationFacts &facts : bound.program.facts) {
    for (TensorId t : facts.tensors)
      fetched[t] += facts.ranks();
    stored.insert(facts.equation.outputs.begin(), facts.equation.outputs.end());
  }
  for (const EdgeLevel &edge : bound.schedule.edges)
    if (edge.level == MemLevel::Register)
      fetched.erase(edge.tensor);
  const bool staged = std::ranges::any_of(bound.schedule.operands, [](const Operand &operand) {
    return operand.level == MemLevel::Shared;
  });
  return staged || std::ranges::any_of(fetched, [&](const auto &entry) {
           return entry.second > 1 || stored.count(entry.first) != 0;
         });
}

/// The equations of phases with several contractions. Their threads keep nothing: what they fetch twice weighs little
/// beside the products, and to try it costs the search more time than to price their trees.
std::set<int> equationsOfTrees(const BoundSchedule &bound) {
  std::set<int> out;
  if (bound.scan())
    return out;
  for (std::span<const TreeNode> phase : bound.phases()) {
    std::set<int> numbers = equationsIn(phase, bound.schedule);
    std::vector<const Equation *> equations;
    for (int e : numbers)
      equations.push_back(&bound.equation(e));
    if (hasSeveralContractions(equations))
      out.merge(numbers);
  }
  return out;
}

} // namespace

Status chooseReadReuse(Schedule &schedule, const ExprProgram &pattern,
                       const std::vector<Symbol> &symbols, const Target &target) {
  std::erase_if(schedule.kept,
                [&](const ReusedRead &kept) { return !isPersistent(schedule, kept); });
  RewriteLimits limits = rewriteLimits(target);
  const BoundSchedule bound(schedule, pattern);
  if (limits.registers == 0 || !mayKeep(bound))
    return success();
  const std::set<int> ofTrees = equationsOfTrees(bound);
  if (ofTrees.size() == pattern.items.size())
    return success();
  NumberedReads numbered;
  limits.numbered = &numbered;
  for (;;) {
    FUSEC_TRY(LoweredKernel lowered, lowerSchedule(pattern, schedule, symbols));
    rewrite(lowered.kernel, limits);
    auto place = [&](int64_t number) { return lowered.reads[static_cast<size_t>(number - 1)]; };
    std::set<KeptRead> kept = keptEverywhere(numbered);
    std::erase_if(kept,
                  [&](const KeptRead &k) { return ofTrees.contains(place(k.read).equation); });
    // Where there was room for all, wanting it takes the same steps.
    const bool same = kept == numbered.kept && !numbered.lackedRoom;
    if (!same && numbered.wanted != kept) {
      numbered = {std::move(kept), {}, {}, false};
      continue;
    }
    for (const KeptRead &k : kept)
      schedule.kept.push_back(
          {place(k.read), k.level, k.from == 0 ? std::nullopt : std::optional(place(k.from))});
    std::ranges::sort(schedule.kept);
    return success();
  }
}

namespace tiling {

std::optional<Schedule> withPersistentReads(const Schedule &schedule, WorkMeter &meter,
                                            const Target &target) {
  if (!cost::joinsPhases(target))
    return std::nullopt;
  const BoundSchedule bound(schedule, meter.program());
  const std::vector<cost::Counts> phases = meter.phases(bound);
  double blocks = 0;
  for (const cost::Counts &phase : phases)
    blocks = std::max(blocks, phase.blocks);
  const auto registers = static_cast<int64_t>(phases.front().registersPerThread),
             sharedBytes = static_cast<int64_t>(phases.front().sharedBytesPerBlock);
  const int64_t threads = int64_t{schedule.units} * schedule.lanes;
  auto fits = [&](int64_t withRegisters, int64_t withShared) {
    return double(cost::residentBlocks(target, withRegisters, withShared, threads)) >= blocks;
  };
  // Registers first: shared memory has fewer bytes, and is asked for them in each step.
  int64_t registersLeft = 0, sharedLeft = 0;
  const int64_t mostRegisters = target.vectorRegisters / 2;
  while (registers + registersLeft < mostRegisters &&
         fits(registers + registersLeft + 1, sharedBytes))
    ++registersLeft;
  constexpr int64_t kStep = 1024;
  while (sharedBytes + sharedLeft + kStep <= target.sharedBytesPerBlock &&
         fits(registers + registersLeft, sharedBytes + sharedLeft + kStep))
    sharedLeft += kStep;

  Schedule out = schedule;
  PersistentStorage before; // of the phases before
  for (size_t phase = 0; phase < bound.phases().size(); ++phase) {
    PersistentStorage most = before;
    for (std::span<const TreeNode> part : sideBySide(bound.phases()[phase])) {
      PersistentStorage here = before;
      for (int equation : equationsIn(part, schedule)) {
        const Loops *loops = bound.loopsOf(equation);
        for (int r = 0; loops && r < static_cast<int>(bound.facts(equation).reads.size()); ++r) {
          const ReadPlace place{equation, 0, r};
          if (!obstacleInGridScan(bound, place, *loops).empty())
            continue;
          PersistentRead held{
              {place, MemLevel::Register, place}, 0, 0, persistentElements(bound, place, *loops)};
          const double inRegisters = persistentRegisters(bound, held),
                       shared = persistentSharedBytes(bound, held);
          if (here.registers + inRegisters <= double(registersLeft)) {
            here.registers += inRegisters;
          } else if (here.sharedBytes + shared <= double(sharedLeft)) {
            here.sharedBytes += shared;
            held.kept.level = MemLevel::Shared;
          } else {
            continue;
          }
          out.kept.push_back(held.kept);
        }
      }
      most.registers = std::max(most.registers, here.registers);
      most.sharedBytes = std::max(most.sharedBytes, here.sharedBytes);
    }
    before = most;
  }
  if (!hasPersistentReads(out))
    return std::nullopt;
  std::ranges::sort(out.kept);
  return out;
}

/// Seconds below which it does not come, whatever its threads keep: those of its arithmetic, and of each byte once.
static double leastSeconds(const PricedSchedule &candidate, const Target &target) {
  std::vector<cost::Counts> phases = candidate.phases;
  for (cost::Counts &phase : phases) {
    phase.vectorLoads = phase.stagedLoads = phase.gathers = 0;
    phase.levelBytes = {};
  }
  return cost::latency(phases, target);
}

Status chooseReadReuse(PricedSchedule &candidate, const ExprProgram &pattern,
                       const Target &target) {
  const std::vector<ReusedRead> before = candidate.schedule.kept;
  FUSEC_CHECK(fusec::chooseReadReuse(candidate.schedule, pattern, pattern.symbols, target));
  // What rounds hold comes first: all blocks are to stay resident.
  if (hasPersistentReads(candidate.schedule) && !isResident({candidate.schedule, pattern}, target))
    candidate.schedule.kept = before;
  if (candidate.schedule.kept == before)
    return success();
  candidate.phases = countWork({candidate.schedule, pattern}, target);
  candidate.seconds = cost::latency(candidate.phases, target);
  return success();
}

Status chooseReuseOfFastest(PricedSchedules &all, const ExprProgram &pattern, const Target &target,
                            bool trustParts) {
  // What a phase saves at both of its ends may make up for units that are slower alone.
  const double chance = cost::joinsPhases(target) ? 2 * target.launchSec : 0;
  // Where the threads of a pack keep less than those of its parts, another one of as many units is the fastest.
  std::set<const PricedSchedule *> done;
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    PricedSchedule *next = nullptr;
    for (PricedSchedule *candidate : fastestOfUnits(all))
      if (done.count(candidate) == 0 && (!next || candidate->seconds < next->seconds))
        next = candidate;
    if (!next)
      return success();
    done.insert(next);
    if (leastSeconds(*next, target) > least + chance)
      continue;
    if (!trustParts || !isPack(next->schedule.tree))
      FUSEC_CHECK(chooseReadReuse(*next, pattern, target));
    least = std::min(least, next->seconds);
  }
}

} // namespace tiling
} // namespace fusec

// Counts of scans whose steps all blocks take together (Rounds.h).
#include "Support/OptValues.h"
#include "Tiling/Held.h"
#include "Tiling/Kept.h"
#include "Tiling/Rounds.h"
#include "Tiling/Work.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fusec::tiling {

namespace {

/// What copies the initial states.
cost::Counts carryCounts(const Schedule &schedule, const ExprProgram &pattern) {
  const std::vector<int64_t> symbols = optValues(pattern.symbols);
  cost::Counts counts;
  counts.unitsPerBlock = schedule.units;
  for (const ScanCarry &carry : scanOf(pattern)->carries) {
    const Tensor &init = pattern.tensors[carry.init];
    const double elements = double(numElements(init.shape).evaluate(symbols).value_or(1));
    counts.readBytes += elements * sizeInBytes(init.type);
    counts.vectorLoads += 2 * std::ceil(elements / (schedule.units * schedule.lanes));
  }
  counts.writtenBytes = counts.readBytes;
  return counts;
}

HeldStorage sum(const std::vector<HeldStorage> &phases) {
  HeldStorage all;
  for (const HeldStorage &phase : phases) {
    all.registers += phase.registers;
    all.sharedBytes += phase.sharedBytes;
  }
  return all;
}

/// Whether some read of the tensor in this part is not held.
bool readsAnew(const RoundPart &part, TensorId tensor) {
  const std::vector<const Equation *> equations = scheduledEquations(part.program);
  for (size_t e = 0; e < equations.size(); ++e) {
    const std::vector<NodeId> reads = readsOf(*equations[e]);
    for (size_t r = 0; part.own[e] && r < reads.size(); ++r) {
      const Kept *kept = keptAt(part.schedule, {static_cast<int>(e), 0, static_cast<int>(r)});
      if (equations[e]->body[reads[r]].index == tensor && !(kept && isHeld(*kept)))
        return true;
    }
  }
  return false;
}

/// Takes the bytes that the part holds from what a round must read, and says what they are.
cost::Counts takeHeld(const RoundPart &part, Traffic &traffic) {
  cost::Counts taken;
  const std::vector<const Equation *> equations = scheduledEquations(part.program);
  std::set<TensorId> found;
  for (const HeldRead &held : heldReads(part.schedule, part.program)) {
    const Equation &e = *equations[static_cast<size_t>(held.kept.read.equation)];
    const TensorId t = e.body[readsOf(e)[static_cast<size_t>(held.kept.read.read)]].index;
    if (!found.insert(t).second || readsAnew(part, t))
      continue;
    double &bytes = traffic.readOf[static_cast<size_t>(t)];
    taken.readBytes += bytes;
    if (part.program.tensors[static_cast<size_t>(t)].kind == TensorKind::Constant)
      taken.constantBytes += bytes;
    traffic.readBytes -= bytes;
    bytes = 0;
  }
  return taken;
}

/// Adds to what comes in front of the rounds that it fetches what they hold: the difference between a round that reads
/// all and one that finds it.
void addFetching(const cost::Counts &held, const cost::Counts &anew, const cost::Counts &round,
                 cost::Counts &front) {
  for (size_t level = 0; level < cost::kLevels; ++level)
    front.levelBytes[level] += std::max(0.0, anew.levelBytes[level] - round.levelBytes[level]);
  front.vectorLoads += std::max(0.0, anew.vectorLoads - round.vectorLoads);
  front.gathers += std::max(0.0, anew.gathers - round.gathers);
  front.blocks = std::max(front.blocks, round.blocks);
  front.readBytes += held.readBytes;
  front.constantBytes += held.constantBytes;
}

bool areResident(const std::vector<cost::Counts> &counts, const Target &target) {
  return cost::joinsPhases(target) &&
         std::all_of(counts.begin(), counts.end(), [&](const cost::Counts &phase) {
           return double(cost::places(phase, target)) >= phase.blocks;
         });
}

/// As if all blocks were resident.
std::vector<cost::Counts> countsOfRounds(const Schedule &schedule, const ExprProgram &pattern,
                                         const Target &target) {
  const double steps =
      double(scanOf(pattern)->steps.evaluate(optValues(pattern.symbols)).value_or(1));
  const bool holds = holdsValues(schedule);
  const HeldStorage all = sum(heldStorage(schedule, pattern));
  std::vector<cost::Counts> counts = {carryCounts(schedule, pattern)};
  for (const RoundPart &part : partsOfRound(schedule, pattern)) {
    ExprProgram own = part.program;
    own.items.clear();
    for (size_t e = 0; e < part.own.size(); ++e)
      if (part.own[e])
        own.items.push_back(part.program.items[e]);
    Traffic traffic = compulsoryTraffic(own);
    std::optional<cost::Counts> anew;
    cost::Counts taken;
    if (holds) {
      anew = phaseCounts(withoutHeld(part.schedule), part.program, target, traffic);
      taken = takeHeld(part, traffic);
    }
    cost::Counts round = phaseCounts(part.schedule, part.program, target, traffic);
    if (anew) {
      addFetching(taken, *anew, round, counts.front());
      const HeldStorage here = sum(heldStorage(part.schedule, part.program));
      round.registersPerThread += all.registers - here.registers;
      round.sharedBytesPerBlock += all.sharedBytes - here.sharedBytes;
    }
    round.rounds = steps;
    counts.push_back(std::move(round));
  }
  cost::shareKernel(counts);
  return counts;
}

} // namespace

std::vector<cost::Counts> roundCounts(const Schedule &schedule, const ExprProgram &pattern,
                                      const Target &target) {
  std::vector<cost::Counts> counts = countsOfRounds(schedule, pattern, target);
  // Where blocks take turns, each step reads all.
  if (holdsValues(schedule) && !areResident(counts, target))
    return countsOfRounds(withoutHeld(schedule), pattern, target);
  return counts;
}

bool isResident(const Schedule &schedule, const ExprProgram &equations, const Target &target) {
  return areResident(countsOfRounds(schedule, equations, target), target);
}

} // namespace fusec::tiling

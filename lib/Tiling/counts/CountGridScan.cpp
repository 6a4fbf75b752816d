// Counts of scans whose steps all blocks take together (schedule/GridScan.h).
#include "Support/OptValues.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/PersistentTraffic.h"
#include "Tiling/schedule/GridScan.h"
#include "Tiling/schedule/PersistentReads.h"

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

} // namespace

std::vector<cost::Counts> gridScanCounts(const Schedule &schedule, const ExprProgram &pattern,
                                         const Target &target) {
  const double steps =
      double(scanOf(pattern)->steps.evaluate(optValues(pattern.symbols)).value_or(1));
  const bool holds = hasPersistentReads(schedule);
  const PersistentStorage all = allPersistentStorage(schedule, pattern);
  std::vector<cost::Counts> counts = {carryCounts(schedule, pattern)};
  for (const GridScanPart &part : partsOfGridScan(schedule, pattern)) {
    ExprProgram own = part.program;
    own.items.clear();
    for (size_t e = 0; e < part.own.size(); ++e)
      if (part.own[e])
        own.items.push_back(part.program.items[e]);
    Traffic traffic = compulsoryTraffic(own);
    std::optional<cost::Counts> anew;
    cost::Counts taken;
    if (holds) {
      anew = phaseCounts(withoutPersistentReads(part.schedule), part.program, target, traffic);
      taken = discountPersistentReads(part.schedule, part.program, part.own, traffic);
    }
    cost::Counts round = phaseCounts(part.schedule, part.program, target, traffic);
    if (anew) {
      addFetching(taken, *anew, round, counts.front());
      const PersistentStorage here = allPersistentStorage(part.schedule, part.program);
      round.registersPerThread += all.registers - here.registers;
      round.sharedBytesPerBlock += all.sharedBytes - here.sharedBytes;
    }
    round.rounds = steps;
    counts.push_back(std::move(round));
  }
  cost::applyWorstOccupancy(counts);
  return counts;
}

} // namespace fusec::tiling

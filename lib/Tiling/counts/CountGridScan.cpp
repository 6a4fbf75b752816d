// Counts of scans whose steps all blocks take together (schedule/Schedule.h), and of what resident blocks hold.
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/PersistentReads.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fusec::tiling {

namespace {

/// One phase of one round as a schedule: of a program whose equations, numbered as before, are no scan's, and in which
/// the tensors are what they are to this phase.
struct GridScanPart {
  std::vector<bool> own; // equations: those of the phase
  ExprProgram program;
  Schedule schedule;
};
std::vector<GridScanPart> partsOfGridScan(const BoundSchedule &bound) {
  std::vector<GridScanPart> parts;
  const Schedule &schedule = bound.schedule;
  for (std::span<const TreeNode> nodes : phasesOf(bound.gridScan()->children)) {
    const std::set<int> inside = equationsIn(nodes, schedule);
    GridScanPart part{{}, bound.program.expr, schedule};
    part.schedule.tree.assign(nodes.begin(), nodes.end());
    part.program.items.clear();
    std::set<TensorId> made, read, leaves;
    for (int e = 0; e < bound.numEquations(); ++e) {
      const bool own = inside.count(e) != 0;
      part.own.push_back(own);
      part.program.items.push_back({bound.equation(e)});
      if (own)
        made.insert(bound.equation(e).outputs.begin(), bound.equation(e).outputs.end());
      const std::vector<TensorId> &tensors = bound.facts(e).tensors;
      (own ? read : leaves).insert(tensors.begin(), tensors.end());
    }
    for (const ScanCarry &carry : bound.scan()->carries)
      leaves.insert(carry.next);
    for (const ScanOutput &output : bound.scan()->scanOutputs)
      leaves.insert(output.perStep);
    for (size_t t = 0; t < part.program.tensors.size(); ++t) {
      Tensor &tensor = part.program.tensors[t];
      const auto id = static_cast<TensorId>(t);
      if (made.count(id) != 0)
        tensor.kind = leaves.count(id) != 0 ? TensorKind::Output : TensorKind::Temp;
      else if (tensor.kind != TensorKind::Constant || read.count(id) == 0)
        tensor.kind = TensorKind::Input; // another phase's, or nobody's
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

/// What copies the initial states.
cost::Counts carryCounts(const BoundSchedule &bound) {
  const Schedule &schedule = bound.schedule;
  cost::Counts counts;
  counts.unitsPerBlock = schedule.units;
  for (const ScanCarry &carry : bound.scan()->carries) {
    const Tensor &init = bound.program.tensor(carry.init);
    const double elements = double(bound.valueOf(numElements(init.shape)));
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

std::vector<cost::Counts> gridScanCounts(const BoundSchedule &bound, const Target &target) {
  const double steps = double(bound.valueOf(bound.scan()->steps));
  const bool holds = hasPersistentReads(bound.schedule);
  const PersistentStorage all = allPersistentStorage(bound);
  std::vector<cost::Counts> counts = {carryCounts(bound)};
  for (const GridScanPart &part : partsOfGridScan(bound)) {
    const ScheduledProgram program(part.program);
    const BoundSchedule boundPart(part.schedule, program);
    ExprProgram own = part.program;
    own.items.clear();
    for (size_t e = 0; e < part.own.size(); ++e)
      if (part.own[e])
        own.items.push_back(part.program.items[e]);
    Traffic traffic = compulsoryTraffic(own);
    std::optional<cost::Counts> anew;
    cost::Counts taken;
    if (holds) {
      const Schedule anewPart = withoutPersistentReads(part.schedule);
      anew = phaseCounts(BoundSchedule(anewPart, program), target, traffic);
      taken = discountPersistentReads(boundPart, part.own, traffic);
    }
    cost::Counts round = phaseCounts(boundPart, target, traffic);
    if (anew) {
      addFetching(taken, *anew, round, counts.front());
      const PersistentStorage here = allPersistentStorage(boundPart);
      round.registersPerThread += all.registers - here.registers;
      round.sharedBytesPerBlock += all.sharedBytes - here.sharedBytes;
    }
    round.rounds = steps;
    counts.push_back(std::move(round));
  }
  cost::applyWorstOccupancy(counts);
  return counts;
}

bool areResident(const std::vector<cost::Counts> &phases, const Target &target) {
  return cost::joinsPhases(target) && std::ranges::all_of(phases, [&](const cost::Counts &phase) {
           return phase.registersPerThread <= target.vectorRegisters &&
                  double(cost::residentBlocks(phase, target)) >= phase.blocks;
         });
}

bool isResident(const BoundSchedule &bound, const Target &target) {
  return areResident(WorkMeter(bound.program, target).residentPhases(bound), target);
}

/// Whether one of these equations reads the tensor and does not find it held.
static bool readsAnew(const BoundSchedule &bound, const std::vector<bool> &own, TensorId tensor) {
  for (int e = 0; e < bound.numEquations(); ++e)
    for (int r = 0;
         own[static_cast<size_t>(e)] && r < static_cast<int>(bound.facts(e).reads.size()); ++r) {
      const ReadPlace place{e, 0, r};
      const ReusedRead *kept = bound.reuse(place);
      if (bound.program.tensorOf(place) == tensor && !(kept && isPersistent(bound.schedule, *kept)))
        return true;
    }
  return false;
}

cost::Counts discountPersistentReads(const BoundSchedule &bound, const std::vector<bool> &own,
                                     Traffic &traffic) {
  cost::Counts taken;
  std::set<TensorId> found;
  for (const PersistentRead &held : persistentReads(bound)) {
    const TensorId t = bound.program.tensorOf(held.kept.read);
    if (!found.insert(t).second || readsAnew(bound, own, t))
      continue;
    double &bytes = traffic.readOf[static_cast<size_t>(t)];
    taken.readBytes += bytes;
    if (bound.program.tensor(t).kind == TensorKind::Constant)
      taken.constantBytes += bytes;
    traffic.readBytes -= bytes;
    bytes = 0;
  }
  return taken;
}

} // namespace fusec::tiling

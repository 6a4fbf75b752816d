#include "Tiling/counts/Prediction.h"

#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/counts/CountWork.h"

#include <array>
#include <set>

namespace fusec {

using namespace tiling;

/// Bytes of the values inside the pattern that have no place on chip.
static double handedBytes(const BoundSchedule &bound) {
  double bytes = 0;
  for (size_t i = 0; i < bound.program.expr.tensors.size(); ++i) {
    const auto t = static_cast<TensorId>(i);
    const bool onChip = bound.level(t) != MemLevel::Global && !outlivesStep(bound, t);
    if (bound.program.tensor(t).kind == TensorKind::Temp && !onChip)
      bytes += bound.program.allBytesOf(t);
  }
  return bytes;
}

Prediction predictionOf(const std::vector<cost::Counts> &phases, double seconds,
                        const BoundSchedule &bound, const Target &target) {
  Prediction prediction{seconds};
  double constants = 0;
  for (const cost::Counts &counts : phases) {
    constants += counts.constantBytes;
    prediction.readBytes += counts.rounds * counts.readBytes;
    prediction.writtenBytes += counts.rounds * counts.writtenBytes;
    for (size_t level = 0; level < counts.levelBytes.size(); ++level)
      prediction.levelBytes[level] += counts.rounds * counts.levelBytes[level];
  }
  if (!bound.gridScan())
    return prediction;
  // Constants, and what rounds hand to each other, are at the same places in every round: the last cache keeps them
  // where it has room.
  const double handed = handedBytes(bound);
  if (constants + handed <= double(target.memory.end()[-2].capacityBytes)) {
    const Traffic once = compulsoryTraffic(bound.program.expr);
    prediction.readBytes = once.readBytes + handed;
    prediction.writtenBytes = once.writtenBytes + handed;
  }
  return prediction;
}

Prediction predict(const BoundSchedule &bound, const Target &target) {
  const std::vector<cost::Counts> phases = countWork(bound, target);
  return predictionOf(phases, cost::latency(phases, target), bound, target);
}

std::optional<StepReads> readsOfStep(const BoundSchedule &bound, const Target &target) {
  const Equation *scan = bound.scan();
  if (!scan)
    return std::nullopt;
  std::set<TensorId> initial; // states that no step reads again
  for (const ScanCarry &carry : scan->carries)
    if (bound.program.tensor(carry.init).kind == TensorKind::Constant)
      initial.insert(carry.init);
  for (const EquationFacts &facts : bound.program.facts)
    for (TensorId t : facts.tensors)
      initial.erase(t);
  double once = 0;
  for (TensorId t : initial)
    once += bound.program.allBytesOf(t);
  StepReads reads;
  reads.steps = bound.valueOf(scan->steps);
  std::array<double, cost::kLevels> bytes{};
  const bool rounds = bound.gridScan() != nullptr;
  for (const cost::Counts &phase : countWork(bound, target)) {
    if (rounds &&
        phase.rounds == 1) { // copies the initial states, and fetches what the rounds hold
      reads.heldBytes += phase.constantBytes;
      continue;
    }
    const double constants = phase.constantBytes - (rounds ? 0 : once);
    const std::array<double, cost::kLevels> shares = cost::rereadShares(phase, target);
    for (size_t level = 0; level < shares.size(); ++level)
      bytes[level] += shares[level] * constants;
    reads.constantBytes += constants;
  }
  for (size_t level = 0; level < target.memory.size(); ++level)
    if (bytes[level] > 0)
      reads.levels.emplace_back(target.memory[level].name, bytes[level]);
  return reads.steps > 1 && reads.constantBytes + reads.heldBytes > 0
             ? std::optional(std::move(reads))
             : std::nullopt;
}

} // namespace fusec

#include "Tiling/counts/Prediction.h"

#include "Cost/LaunchTime.h"
#include "Support/OptValues.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/GridScan.h"

#include <array>
#include <set>

namespace fusec {

using namespace tiling;

/// Bytes of the values inside the pattern that have no place on chip.
static double handedBytes(const Schedule &schedule, const ExprProgram &equations) {
  const std::vector<int64_t> symbols = optValues(equations.symbols);
  const Equation *scan = scanOf(equations);
  double bytes = 0;
  for (size_t i = 0; i < equations.tensors.size(); ++i) {
    const auto t = static_cast<TensorId>(i);
    const Tensor &tensor = equations.tensors[i];
    const bool onChip = levelOf(schedule, t) != MemLevel::Global &&
                        !(scan && outlivesStep(*scan, t, hasGridScan(schedule)));
    if (tensor.kind == TensorKind::Temp && !onChip)
      bytes += double(numElements(tensor.shape).evaluate(symbols).value_or(1)) *
               sizeInBytes(tensor.type);
  }
  return bytes;
}

Prediction predictionOf(const std::vector<cost::Counts> &phases, double seconds,
                        const Schedule &schedule, const ExprProgram &pattern,
                        const Target &target) {
  Prediction prediction{seconds, 0, 0};
  double constants = 0;
  for (const cost::Counts &counts : phases) {
    constants += counts.constantBytes;
    prediction.readBytes += counts.rounds * counts.readBytes;
    prediction.writtenBytes += counts.rounds * counts.writtenBytes;
  }
  if (!hasGridScan(schedule))
    return prediction;
  // Constants, and what rounds hand to each other, are at the same places in every round: the last cache keeps them
  // where it has room.
  const ScheduledPattern scheduled(schedule, pattern);
  const double handed = handedBytes(schedule, scheduled.program());
  if (constants + handed <= double(target.memory.end()[-2].capacityBytes)) {
    const Traffic once = compulsoryTraffic(scheduled.program());
    prediction.readBytes = once.readBytes + handed;
    prediction.writtenBytes = once.writtenBytes + handed;
  }
  return prediction;
}

Prediction predict(const Schedule &schedule, const ExprProgram &pattern, const Target &target) {
  const std::vector<cost::Counts> phases = countWork(schedule, pattern, target);
  return predictionOf(phases, cost::latency(phases, target), schedule, pattern, target);
}

std::optional<StepReads> readsOfStep(const Schedule &schedule, const ExprProgram &pattern,
                                     const Target &target) {
  const ScheduledPattern scheduled(schedule, pattern);
  const ExprProgram &program = scheduled.program();
  const Equation *scan = scanOf(program);
  if (!scan)
    return std::nullopt;
  const std::vector<int64_t> symbols = optValues(pattern.symbols);
  std::set<TensorId> initial; // states that no step reads again
  for (const ScanCarry &carry : scan->carries)
    if (program.tensors[carry.init].kind == TensorKind::Constant)
      initial.insert(carry.init);
  for (const Equation *e : scheduledEquations(program))
    for (NodeId read : readsOf(*e))
      initial.erase(e->body[read].index);
  double once = 0;
  for (TensorId t : initial)
    once += double(numElements(program.tensors[t].shape).evaluate(symbols).value_or(1)) *
            sizeInBytes(program.tensors[t].type);
  StepReads reads;
  reads.steps = scan->steps.evaluate(symbols).value_or(1);
  std::array<double, cost::kLevels> bytes{};
  const bool rounds = hasGridScan(schedule);
  for (const cost::Counts &phase : countWork(schedule, pattern, target)) {
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

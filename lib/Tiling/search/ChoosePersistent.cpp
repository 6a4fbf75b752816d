#include "Tiling/search/ChoosePersistent.h"

#include "Cost/Occupancy.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/Phases.h"
#include "Tiling/schedule/Statements.h"
#include "Tiling/verify/Rules.h"

#include <algorithm>
#include <map>

namespace fusec::tiling {

std::optional<Schedule> withPersistentReads(const Schedule &schedule, const ExprProgram &program,
                                            const Target &target) {
  if (!cost::joinsPhases(target))
    return std::nullopt;
  const std::vector<cost::Counts> phases = WorkMeter(program, target).phases(schedule);
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
  const std::vector<const Equation *> equations = scheduledEquations(program);
  const std::map<int, std::vector<const TreeNode *>> computes = computesOf(schedule.tree);
  PersistentStorage before; // of the phases before
  for (const auto &parts : partsOfPhases(schedule)) {
    PersistentStorage most = before;
    for (std::span<const TreeNode> part : parts) {
      PersistentStorage here = before;
      for (const auto &[equation, inside] : computesOf(part)) {
        const Equation &e = *equations[static_cast<size_t>(equation)];
        for (int r = 0; r < static_cast<int>(readsOf(e).size()); ++r) {
          const ReadPlace place{equation, 0, r};
          const std::vector<const TreeNode *> &loops = computes.at(equation);
          if (!obstacleInGridScan(schedule, program, equations, place, loops).empty())
            continue;
          PersistentRead held{{place, MemLevel::Register, place},
                              0,
                              0,
                              persistentElements(schedule, e, place, loops)};
          const double inRegisters = persistentRegisters(e, held),
                       shared = persistentSharedBytes(schedule, e, held);
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
  std::sort(out.kept.begin(), out.kept.end());
  return out;
}

} // namespace fusec::tiling

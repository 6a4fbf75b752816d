#include "Tiling/counts/PersistentTraffic.h"

#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PersistentReads.h"
#include "Tiling/schedule/ReadReuse.h"

#include <algorithm>
#include <set>

namespace fusec::tiling {

bool areResident(const std::vector<cost::Counts> &phases, const Target &target) {
  return cost::joinsPhases(target) &&
         std::all_of(phases.begin(), phases.end(), [&](const cost::Counts &phase) {
           return phase.registersPerThread <= target.vectorRegisters &&
                  double(cost::residentBlocks(phase, target)) >= phase.blocks;
         });
}

bool isResident(const Schedule &schedule, const ExprProgram &program, const Target &target) {
  return areResident(WorkMeter(program, target).residentPhases(schedule), target);
}

/// Whether one of these equations reads the tensor and does not find it held.
static bool readsAnew(const Schedule &schedule, const ExprProgram &program,
                      const std::vector<bool> &own, TensorId tensor) {
  const std::vector<const Equation *> equations = scheduledEquations(program);
  for (size_t e = 0; e < equations.size(); ++e) {
    const std::vector<NodeId> reads = readsOf(*equations[e]);
    for (size_t r = 0; own[e] && r < reads.size(); ++r) {
      const ReusedRead *kept = findReuse(schedule, {static_cast<int>(e), 0, static_cast<int>(r)});
      if (equations[e]->body[reads[r]].index == tensor && !(kept && isPersistent(schedule, *kept)))
        return true;
    }
  }
  return false;
}

cost::Counts discountPersistentReads(const Schedule &schedule, const ExprProgram &program,
                                     const std::vector<bool> &own, Traffic &traffic) {
  cost::Counts taken;
  const std::vector<const Equation *> equations = scheduledEquations(program);
  std::set<TensorId> found;
  for (const PersistentRead &held : persistentReads(schedule, program)) {
    const Equation &e = *equations[static_cast<size_t>(held.kept.read.equation)];
    const TensorId t = e.body[readsOf(e)[static_cast<size_t>(held.kept.read.read)]].index;
    if (!found.insert(t).second || readsAnew(schedule, program, own, t))
      continue;
    double &bytes = traffic.readOf[static_cast<size_t>(t)];
    taken.readBytes += bytes;
    if (program.tensors[static_cast<size_t>(t)].kind == TensorKind::Constant)
      taken.constantBytes += bytes;
    traffic.readBytes -= bytes;
    bytes = 0;
  }
  return taken;
}

} // namespace fusec::tiling

#include "Tiling/counts/PersistentTraffic.h"

#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/PersistentReads.h"

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

bool isResident(const BoundSchedule &bound, const Target &target) {
  return areResident(WorkMeter(bound.context(), target).residentPhases(bound), target);
}

/// Whether one of these equations reads the tensor and does not find it held.
static bool readsAnew(const BoundSchedule &bound, const std::vector<bool> &own, TensorId tensor) {
  for (int e = 0; e < static_cast<int>(bound.equations().size()); ++e)
    for (int r = 0;
         own[static_cast<size_t>(e)] && r < static_cast<int>(bound.facts(e).reads.size()); ++r) {
      const ReadPlace place{e, 0, r};
      const ReusedRead *kept = bound.reuse(place);
      if (bound.tensor(place) == tensor && !(kept && isPersistent(bound.schedule(), *kept)))
        return true;
    }
  return false;
}

cost::Counts discountPersistentReads(const BoundSchedule &bound, const std::vector<bool> &own,
                                     Traffic &traffic) {
  cost::Counts taken;
  std::set<TensorId> found;
  for (const PersistentRead &held : persistentReads(bound)) {
    const TensorId t = bound.tensor(held.kept.read);
    if (!found.insert(t).second || readsAnew(bound, own, t))
      continue;
    double &bytes = traffic.readOf[static_cast<size_t>(t)];
    taken.readBytes += bytes;
    if (bound.program().tensors[static_cast<size_t>(t)].kind == TensorKind::Constant)
      taken.constantBytes += bytes;
    traffic.readBytes -= bytes;
    bytes = 0;
  }
  return taken;
}

} // namespace fusec::tiling

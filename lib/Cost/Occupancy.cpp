#include "Cost/Occupancy.h"

#include <algorithm>
#include <cassert>

namespace fusec::cost {

namespace {

int64_t roundUp(int64_t value, int64_t granule) {
  return (value + granule - 1) / granule * granule;
}

} // namespace

int64_t residentBlocksPerCore(const Target &target, int64_t registersPerThread,
                              int64_t sharedBytesPerBlock, int64_t threadsPerBlock) {
  assert(registersPerThread >= 0 && sharedBytesPerBlock >= 0 && threadsPerBlock > 0);
  if (target.kind == TargetKind::Cpu)
    return 1;
  const int64_t units = (threadsPerBlock + target.lanes - 1) / target.lanes;
  const int64_t unitsOfScheduler = [&] {
    const int64_t slots = target.maxThreadsPerCore / target.lanes / target.schedulersPerCore;
    const int64_t each = roundUp(registersPerThread * target.lanes, target.registerGranule);
    const int64_t file = target.registersPerCore / target.schedulersPerCore;
    return each > 0 ? std::min(slots, file / each) : slots;
  }();
  int64_t blocks = unitsOfScheduler * target.schedulersPerCore / units;
  const int64_t shared =
      roundUp(sharedBytesPerBlock + target.sharedReservedBytes, target.sharedGranuleBytes);
  if (shared > 0)
    blocks = std::min(blocks, target.memory.front().capacityBytes / shared);
  return std::min(blocks, int64_t(target.maxBlocksPerCore));
}

int64_t residentBlocks(const Target &target, int64_t registersPerThread,
                       int64_t sharedBytesPerBlock, int64_t threadsPerBlock) {
  return target.cores *
         residentBlocksPerCore(target, registersPerThread, sharedBytesPerBlock, threadsPerBlock);
}

} // namespace fusec::cost

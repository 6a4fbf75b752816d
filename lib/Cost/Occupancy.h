#pragma once
#include "Target/Target.h"

namespace fusec::cost {

/// Blocks that one core (SM, CU) holds at the same time (occupancy): the minimum over its registers, shared memory,
/// units and block slots. Registers are allocated per scheduler, so that what remains of one scheduler's registers is
/// of no use to another's units. 0 if not even one block fits. A CPU's core runs one block at a time: 1.
int64_t residentBlocksPerCore(const Target &target, int64_t registersPerThread,
                              int64_t sharedBytesPerBlock, int64_t threadsPerBlock);

/// Blocks that the whole device holds at the same time: the largest grid whose blocks may wait for each other. Only the
/// driver knows what other contexts take, so the runtime asks it again when it loads a kernel with device barriers.
int64_t residentBlocks(const Target &target, int64_t registersPerThread,
                       int64_t sharedBytesPerBlock, int64_t threadsPerBlock);

} // namespace fusec::cost

#pragma once
#include "Target/Target.h"

namespace fusec::cost {

/// Blocks that one core (SM, CU) holds at the same time: the least of what its registers, its shared memory, its
/// units and its block slots leave room for. A unit's registers lie with one scheduler, so that a remainder there is
/// of no use to the others. 0 where not even one block fits. A CPU's core runs one block after the other: 1.
int64_t residentBlocksPerCore(const Target &target, int64_t registersPerThread,
                              int64_t sharedBytesPerBlock, int64_t threadsPerBlock);

/// The same for the whole device: the largest grid whose blocks may wait for each other. What another context takes
/// is known to the driver alone; a device barrier asks it again at load time.
int64_t residentBlocks(const Target &target, int64_t registersPerThread,
                       int64_t sharedBytesPerBlock, int64_t threadsPerBlock);

} // namespace fusec::cost

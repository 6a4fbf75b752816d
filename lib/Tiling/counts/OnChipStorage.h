#pragma once
#include "Tiling/schedule/BoundSchedule.h"

#include <map>

namespace fusec::tiling {

constexpr double kRegistersForAddresses = 24; // of a thread, and for what is being computed

/// What a block holds on chip, estimated from the schedule: the allocator of Gir knows it after the lowering.
struct OnChipStorage {
  /// Registers of 32 bits: some for addresses, and the maximum over time of what accumulators, edges and reused values
  /// hold.
  double registersPerThread = 0;
  /// Room for `edges` and `operands` at the largest sizes, and for what units exchange: what is live at different times
  /// shares it, as the allocator of Gir has it; in a pack that of the part that has most.
  double sharedBytes = 0;
  std::map<TensorId, TensorId> buffers; // of inner values in shared memory: sharedBuffers
  // At the sizes that the schedule is counted at:
  std::map<TensorId, double> edges;        // bytes of inner values in shared memory
  std::map<OperandIndex, double> operands; // bytes of staged ones
};
OnChipStorage storageOf(const BoundSchedule &bound);

} // namespace fusec::tiling

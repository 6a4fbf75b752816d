#pragma once
#include "Tiling/schedule/Schedule.h"

#include <map>

namespace fusec::tiling {

constexpr double kRegistersForAddresses = 24; // of a thread, and for what is being computed

/// What a block holds on chip, estimated from the schedule: the allocator of Gir knows it after the lowering.
struct OnChipStorage {
  /// Of 32 bits: some for addresses, and the most that accumulators, edges and kept values hold at one time.
  double registersPerThread = 0;
  double sharedBytes =
      0; // of `edges` and `operands`, and for what units exchange, all of it at once; in a pack of
         // the part that has most of it
  std::map<TensorId, double> edges; // bytes of inner values in shared memory
  std::map<int, double> operands;   // bytes of staged ones
};
OnChipStorage storageOf(const Schedule &schedule, const ExprProgram &pattern);

} // namespace fusec::tiling

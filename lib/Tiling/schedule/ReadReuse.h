#pragma once
// What threads keep: which reads of memory a schedule leaves out since their threads have the values already. Gir's
// rules (Gir/Rewrite.h) know where that holds and what there is room for; the schedule says what is done.

#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Where an equation has a tensor's values, if it reads none of them: of its first read of the tensor.
std::optional<MemLevel> reusedLevel(const BoundSchedule &bound, int equation, TensorId tensor);

/// True if an intermediate value is never stored, since every reader reuses it from a register or there is no reader.
bool isStoreElided(const BoundSchedule &bound, TensorId tensor);
/// True if nobody reads an operand's tile, which is then not stored when it is staged.
bool isStoreElided(const BoundSchedule &bound, const Operand &operand);

/// What a thread and a block need for values that are kept.
struct ReuseStorage {
  struct Value {
    double registersPerThread; // of 32 bits
    bool stored;               // made there, else read
    // Where the thread gets it, and for what it is kept; none: all the time.
    std::vector<const LeafNode *> leaves;
  };
  std::vector<Value> registers;
  double sharedBytes = 0;
};
ReuseStorage reuseStorage(const BoundSchedule &bound);

} // namespace fusec::tiling

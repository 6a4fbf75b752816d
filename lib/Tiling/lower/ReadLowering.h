#pragma once
#include "Tiling/lower/PersistentValues.h"
#include "Tiling/lower/StepValues.h"

namespace fusec::lowering {

/// Equations' expressions in the kernel: a read becomes one of a register, of a staged or packed operand, or of memory
/// at the address that the loops give.
class ReadLowering {
public:
  ReadLowering(const BoundSchedule &bound, KernelWriter &writer, BufferTable &buffers,
               LoopState &loops, StepValues &steps, PersistentValues &persistent)
      : bound(bound), writer(writer), buffers(buffers), loops(loops), steps(steps),
        persistent(persistent) {}

  int computeRank = -1; // of the Compute statement that is being lowered

  /// A node of the equation at the current point. A cascade's State leaves are its states, its Part leaves `parts`.
  NodeId value(int equation, NodeId root, const std::vector<BufferId> *parts = nullptr);
  NodeId readRegister(const Accumulator &accumulator, BufferId buffer);
  /// Flat address at the current point of an access that is affine in the equation's axes.
  NodeId address(int equation, const FlatAccess &access);

private:
  NodeId readTensor(int equation, NodeId original, const Scalar &copied);
  NodeId readProducer(int producer, int equation, NodeId original, const Scalar &copied);
  NodeId readMemory(int equation, NodeId original, const Scalar &copied);
  uint64_t boundByPadding(int equation, NodeId read) const;
  NodeId readPacked(const Operand &operand, size_t index);
  NodeId readStaged(const Operand &operand, const StagedOperand &stage);
  NodeId numbered(const ReadPlace &place, NodeId node);

  const BoundSchedule &bound;
  KernelWriter &writer;
  BufferTable &buffers;
  LoopState &loops;
  StepValues &steps;
  PersistentValues &persistent;
  Body &body = writer.body;
};

} // namespace fusec::lowering

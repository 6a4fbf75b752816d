#pragma once
#include "Tiling/lower/LoopState.h"

namespace fusec::lowering {

/// What a scan's values are from step to step. In a grid scan a state lies twice in device memory: each step reads the
/// one half and writes the other. A per-step value lies in its slice of the stacked tensor. Outside of scans a value
/// lies in its tensor and nowhere else.
class StepValues {
public:
  StepValues(const BoundSchedule &bound, KernelWriter &writer, const BufferTable &buffers,
             LoopState &loops)
      : bound(bound), writer(writer), buffers(buffers), loops(loops) {}

  VarId gridStep = -1; // counts the steps of a grid scan

  /// Index along the leading axis of stacked tensors for the current step.
  NodeId step();
  /// Where element `flat` of a tensor that lies in `buffer` is read in the current step.
  NodeId readAddress(TensorId tensor, BufferId buffer, NodeId flat);
  /// Stores an element of a tensor in device memory, for the current step and wherever later ones look for it.
  void store(TensorId tensor, NodeId element, NodeId value, Stmts &result);
  /// Moves the states on: 0 before the first step (previous = init), 1 after a step (previous = next), 2 after the last
  /// one (final = previous).
  void carry(int when, Stmts &result);

private:
  NodeId halfOf(TensorId state, bool written);
  void storeStacked(const ScanOutput &to, NodeId element, NodeId value, Stmts &result);

  const BoundSchedule &bound;
  KernelWriter &writer;
  const BufferTable &buffers;
  LoopState &loops;
  Body &body = writer.body;
};

} // namespace fusec::lowering

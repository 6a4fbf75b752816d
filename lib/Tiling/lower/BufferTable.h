#pragma once
#include "Tiling/lower/KernelWriter.h"

#include <map>

namespace fusec::lowering {

/// A block's own memory for an internal tensor: all of it, or its tile below the loops that the statement that makes it
/// and those that read it have in common.
struct SharedTile {
  BufferId buffer = -1;
  int producer = -1; // the equation that makes it
  bool whole = true;
  size_t depth = 0;                             // number of those loops
  std::vector<std::pair<AxisId, int64_t>> axes; // the producer's, with the most elements of each
};

/// Registers of an equation: one element for each iteration of the Unroll loops over spatial axes around its Compute.
struct Accumulator {
  int equation = -1;
  std::vector<BufferId> outputs; // each holds an output of the equation after its reduction
  std::vector<BufferId> states;  // of a cascade
  std::vector<std::pair<AxisId, int>> dims; // (axis, which of its Unroll loops)
  Shape shape;                              // trips of these loops, then `parts` where several
  // Partial results of a reduction that Combine folds, one for each iteration of the Unroll loop over a reduced axis.
  // Each is a chain of dependent operations, so that one's latency hides behind the others.
  AxisId partsAxis;
  int64_t parts = 1;
  bool perLane = false;
  bool lanesReduce = false, unitsReduce = false;
  bool lanesKeep = false; // each lane has a value of its own, along a spatial axis
};

/// A block's copy of an operand's tile.
struct StagedOperand {
  BufferId buffer = -1;
  Shape shape;               // one extent a digit, padding included
  std::vector<NodeId> bases; // of index digits: the least value of the index over the tile
  size_t depth = 0;          // loops around the Stage statement
};

/// The kernel's buffers, by what they hold. Making the table adds the parameters and the Shared edges to the kernel;
/// registers and staged operands come with the statements that need them.
class BufferTable {
public:
  BufferTable(const BoundSchedule &bound, KernelWriter &writer);

  BufferId global(TensorId tensor) const;
  BufferId packed(size_t operand) const { return packedOperands.at(operand); }
  /// Null for a tensor that is no Shared edge.
  const SharedTile *shared(TensorId tensor) const;
  /// Where the tensor lies in memory: Shared, or else Global.
  BufferId memoryOf(TensorId tensor) const;

  /// Sets all but the buffers of an equation's accumulator from the loops around its Compute. False, with a problem
  /// noted, if there is no Compute or a trip is symbolic.
  bool shapeAccumulator(int equation);
  BufferId addRegister(const Accumulator &accumulator, const std::string &suffix, DType type);

  std::vector<Accumulator> accumulators; // one an equation
  std::vector<StagedOperand> staged;     // one an operand

private:
  void addParams();
  BufferId addParam(GirBuffer buffer, KernelParam param);
  void addShared(const Tensor &tensor, TensorId id);
  bool placeTile(TensorId tensor, SharedTile &tile) const;

  const BoundSchedule &bound;
  KernelWriter &writer;
  std::map<TensorId, BufferId> globals;
  std::map<size_t, BufferId> packedOperands;
  std::map<TensorId, SharedTile> sharedTiles;
};

} // namespace fusec::lowering

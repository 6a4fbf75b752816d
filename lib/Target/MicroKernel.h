#pragma once
#include "Support/DType.h"

#include <string>
#include <vector>

namespace fusec {

struct Target;

/// What of a target's instructions makes products of small tiles in registers:
///   sums[m, n] += rows[m, k] * columns[k, n]
/// A schedule names it at a Compute (Tiling/schedule/Schedule.h), a kernel at a loop (Gir/Gir.h); the loops inside of
/// that are its own, and their trips multiples of `m`, `n` and `k`, which are those of one operation. `emitter` names
/// its code in lib/Codegen/Kernels. The loops are also what it means: terms of the sums follow in the order of k. An
/// element of a row is the same in all lanes, wherever it lies; columns have one of each lane, neighbours in memory.
///
/// A target with a matrix unit would have rows whose operands have a layout of their own, a map (lane, register) ->
/// (row, column) of the tile: then no loop over lanes is among those of the kernel, since all lanes make it together.
/// 16-bit types are those of packed registers, two elements each. What is in flight to a tile, and in how many stages,
/// is said of the buffer that it comes to, not here.
struct MicroKernel {
  std::string name;    // as in texts
  std::string emitter; // by which lib/Codegen/Kernels knows the code
  bool (*runsOn)(const Target &target) = nullptr;
  DType rowType = DType::F32, columnType = DType::F32, sumType = DType::F32;
  int64_t m = 1, n = 1, k = 1;
  int64_t registers = 0; // of a unit that sums and operands may take, each of one element a lane
  double vectorOps = 1;  // the time of one operation, in vector operations (Cost/Cost.h)

  /// Registers that a tile of so many elements takes: all sums, the columns of one step and an element of the rows.
  int64_t registersOf(int64_t tileRows, int64_t tileColumns) const {
    return (tileRows / m) * (tileColumns / n) + tileColumns / n + 1;
  }
};

/// The kernels that run on a target.
std::vector<MicroKernel> microKernels(const Target &target);

} // namespace fusec

#pragma once
#include "Gir/Program.h"

namespace fusec {

/// Memory of one parameter of a kernel.
struct GirArgument {
  uint8_t *bytes = nullptr;
  int64_t sizeBytes = 0;
};

struct GirInterpreterOptions {
  /// Reports reads of Shared and Register elements that nobody wrote, and two threads that touch one element of
  /// Shared memory, or of a Global buffer that the kernel writes, without a barrier between them while one of
  /// them writes. Accesses outside a buffer are reported always.
  bool checks = true;
  bool resident = true;              // all blocks of a kernel that asks (GirKernel::resident)
  int64_t maxLoopTrips = 10'000'000; // of a program's Loop
};

/// Runs a verified kernel with the bits of strict compiled code: blocks one after the other, the units of a Unit
/// loop too, the lanes of a Lane loop together, statement by statement. `symbols` holds the values of all symbols
/// of the kernel's table. The first fault is returned as BadIr, with kernel, statement and buffer.
Status run(const GirKernel &kernel, const std::vector<GirArgument> &arguments,
           const std::vector<int64_t> &symbols, const GirInterpreterOptions &options = {});

/// Runs a verified program on its inputs, in their order, and returns its outputs. Temps start with bytes 0xcd, so
/// that one that is read before it was written shows.
Result<std::vector<ConstantRef>> evaluate(const GirProgram &program,
                                          const std::vector<ConstantRef> &inputs,
                                          const GirInterpreterOptions &options = {});

} // namespace fusec

// The table of micro-kernels. A new one is a row here; what no emitter of lib/Codegen/Kernels makes has one there, too.
#include "Target/MicroKernel.h"

#include "Target/Target.h"

#include <algorithm>
#include <iterator>

namespace fusec {

namespace {

/// On vectors of so many floats: a fused multiply-add of a vector of columns and an element of a row.
template <int Lanes, int Registers> MicroKernel vectorsOfFloats(const char *name) {
  return {.name = name,
          .emitter = "outer-product",
          .runsOn = [](const Target &t) { return t.vectorLanes && t.lanes == Lanes; },
          .n = Lanes,
          .registers = Registers};
}

/// Made when it is asked for: targets are looked up before main, too.
const std::vector<MicroKernel> &rows() {
  static const std::vector<MicroKernel> all = {
      vectorsOfFloats<8, 16>("avx2.f32"),
      vectorsOfFloats<16, 32>("avx512.f32"),
  };
  return all;
}

} // namespace

std::vector<MicroKernel> microKernels(const Target &target) {
  std::vector<MicroKernel> found;
  std::ranges::copy_if(rows(), std::back_inserter(found),
                       [&](const MicroKernel &row) { return row.runsOn(target); });
  return found;
}

} // namespace fusec

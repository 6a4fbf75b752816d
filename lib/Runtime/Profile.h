#pragma once
#include "Runtime/Device.h"

#include <cstdint>

namespace fusec::rt {

/// Time and number of runs of each kernel, for `--counters` on a CPU.
class Profile {
public:
  static uint64_t now(); // nanoseconds
  void reset(size_t kernels) { rows.assign(kernels, {}); }
  void add(const Launch &launch, const bundle::Kernel &kernel, uint64_t nanoseconds);
  /// {"kernels":[{"name":..,"nodes":[..],"launches":..,"blocks":..,"ns":..},..]}
  std::string json() const;

private:
  struct Row {
    const bundle::Kernel *kernel = nullptr;
    uint64_t launches = 0, blocks = 0, nanoseconds = 0;
  };
  std::vector<Row> rows;
};

/// Message and status for a kernel that returned something else than FUSEC_KERNEL_OK.
fusert_status kernelFailed(const bundle::Program &program, const Launch &launch, int32_t status);

/// "text" with escapes.
std::string jsonString(const std::string &text);
/// ["a","b"]
std::string jsonStrings(const std::vector<std::string> &list);

} // namespace fusec::rt

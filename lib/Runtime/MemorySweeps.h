#pragma once
#include <cstddef>

namespace fusec::rt {

/// What a core does with a piece of memory.
struct Sweep {
  const char *what; // of the figures (runtime.h)
  /// `memory` is a multiple of 64, `bytes` of kSweepBytes.
  void (*run)(void *memory, size_t bytes);
};
constexpr size_t kSweepBytes = 4096;
constexpr size_t kSweepCount = 5;
/// For processors of level 3 of x86-64 and for those of level 4. The runtime is built for any x86-64, these are not.
extern const Sweep *const kNarrowSweeps, *const kWideSweeps;

} // namespace fusec::rt

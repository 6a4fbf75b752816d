#pragma once
#include <cstddef>
#include <span>

namespace fusec::rt {

/// What a core does with a piece of memory, in vectors as wide as the processor has.
struct Sweep {
  const char *what; // of the figures (runtime.h)
  /// `memory` is a multiple of 64, `bytes` of kSweepBytes.
  void (*run)(void *memory, size_t bytes);
};
constexpr size_t kSweepBytes = 4096;
/// `level`: of x86-64, 3 or 4.
std::span<const Sweep> sweepsFor(int level);

} // namespace fusec::rt

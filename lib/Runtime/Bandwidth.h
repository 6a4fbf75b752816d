#pragma once
#include <cstddef>

namespace fusec::rt {

/// What a core does with a piece of memory, in vectors as wide as the processor has.
struct Sweeps {
  using Read = void (*)(const void *from, size_t bytes);
  using Copy = void (*)(void *to, const void *from, size_t bytes);
  Read read;
  Copy copy;
  Copy stream; // a copy whose stores go past the caches
};
/// Pointers are multiples of 64, bytes of kSweepBytes.
constexpr size_t kSweepBytes = 512;
/// `level`: of x86-64, 3 or 4.
Sweeps sweepsFor(int level);

} // namespace fusec::rt

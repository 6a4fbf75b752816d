#pragma once
// Counts what a thread allocates: work that has no counter of its own. One file of a program includes it.
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fusec::test {

struct Allocations {
  int64_t count = 0, bytes = 0;
};
inline thread_local Allocations *meter = nullptr; // counts this thread's allocations

} // namespace fusec::test

// Inlined, the two would look like a mismatched pair to the compiler.
[[gnu::noinline]] void *operator new(std::size_t bytes) {
  if (fusec::test::meter) {
    ++fusec::test::meter->count;
    fusec::test::meter->bytes += static_cast<int64_t>(bytes);
  }
  if (void *p = std::malloc(bytes ? bytes : 1))
    return p;
  throw std::bad_alloc();
}
// std::stable_sort asks for this one, which a sanitizer would answer from a heap of its own.
[[gnu::noinline]] void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void *p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept { std::free(p); }

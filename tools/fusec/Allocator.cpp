// The program's allocator is jemalloc. LLVM asks glibc's for its statistics, and would bring it along for that alone.
#include <cstdint>
#include <jemalloc/jemalloc.h>
#include <malloc.h>

extern "C" struct mallinfo2 mallinfo2() noexcept {
  uint64_t epoch = 1; // brings the statistics up to date
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  struct mallinfo2 info = {};
  size_t size = sizeof info.uordblks;
  mallctl("stats.allocated", &info.uordblks, &size, nullptr, 0);
  return info;
}

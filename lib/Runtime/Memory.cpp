#include "Runtime/Memory.h"

#include "Runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

namespace fusec::rt {

namespace {
constexpr size_t kPage = 4096, kHugePage = 2 << 20;
}

fusert_allocator defaultAllocator() {
  fusert_allocator a{};
  a.struct_size = sizeof a;
  a.allocate = [](void *, size_t bytes, size_t alignment) -> void * {
    void *p = nullptr;
    const bool huge = bytes >= 2 * kHugePage;
    if (posix_memalign(&p, std::max(alignment, huge ? kHugePage : kPage), bytes) != 0)
      return nullptr;
    if (huge)
      madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE); // fewer TLB misses; refused is fine
    return p;
  };
  a.release = [](void *, void *memory, size_t) { std::free(memory); };
  return a;
}

HostBlock &HostBlock::operator=(HostBlock &&o) noexcept {
  if (this != &o) {
    reset();
    allocator = o.allocator;
    memory = std::exchange(o.memory, nullptr);
    bytes = std::exchange(o.bytes, 0);
  }
  return *this;
}

fusert_status HostBlock::allocate(const fusert_allocator &from, size_t n) {
  reset();
  if (n == 0)
    return FUSERT_OK;
  void *p = from.allocate(from.user, n, kAlign);
  if (!p)
    return fail(FUSERT_NO_MEMORY, "no memory for " + std::to_string(n) + " bytes");
  if (reinterpret_cast<uintptr_t>(p) % kAlign != 0) {
    from.release(from.user, p, n);
    return fail(FUSERT_NO_MEMORY, "the caller's allocator returned memory that is not aligned to " +
                                      std::to_string(kAlign));
  }
  allocator = from;
  memory = p;
  bytes = n;
  return FUSERT_OK;
}

void HostBlock::reset() {
  if (memory)
    allocator.release(allocator.user, memory, bytes);
  memory = nullptr;
  bytes = 0;
}

} // namespace fusec::rt

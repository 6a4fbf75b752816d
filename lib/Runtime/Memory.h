#pragma once
#include "fusec/runtime.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace fusec::rt {

constexpr size_t kAlign = 256; // of every block that the runtime hands to kernels
constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// malloc and free as an allocator whose blocks begin with pages, large ones with huge pages: no output begins a few
/// lines behind an input in their pages, where loads would wait for stores.
fusert_allocator defaultAllocator();

/// One block of host memory from an allocator; empty when size 0 was asked for.
class HostBlock {
public:
  HostBlock() = default;
  HostBlock(HostBlock &&o) noexcept { *this = std::move(o); }
  HostBlock &operator=(HostBlock &&o) noexcept;
  ~HostBlock() { reset(); }

  /// FUSERT_NO_MEMORY when the allocator gives nothing, or something misaligned.
  fusert_status allocate(const fusert_allocator &from, size_t bytes);
  void reset();
  void *data() const { return memory; }
  size_t size() const { return bytes; }

private:
  fusert_allocator allocator{};
  void *memory = nullptr;
  size_t bytes = 0;
};

} // namespace fusec::rt

#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusec::rt {

/// One temporary: its bytes under the shapes set, and the steps during which it must keep its contents.
struct MemoryRequest {
  uint64_t bytes = 0;
  int32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets; // one a request, multiples of kAlign
  uint64_t totalBytes = 0;
};

/// Packs requests whose lifetimes do not meet into the same memory: largest first, each into the tightest gap that
/// is free during its life, else behind everything. nullopt when the total is over 2^46 bytes.
std::optional<MemoryPlan> planMemory(const std::vector<MemoryRequest> &requests);

} // namespace fusec::rt

#include "Runtime/MemoryPlan.h"

#include "Runtime/Memory.h"

#include <algorithm>
#include <numeric>

namespace fusec::rt {

namespace {

constexpr uint64_t kMaxTotal = uint64_t{1} << 46;
// Packing takes quadratic time; more temporaries than this are laid out one behind the other.
constexpr size_t kMaxPacked = 16384;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

} // namespace

std::optional<MemoryPlan> planMemory(const std::vector<MemoryRequest> &requests) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  for (const MemoryRequest &r : requests)
    if (r.bytes > kMaxTotal)
      return std::nullopt;

  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  const bool pack = requests.size() <= kMaxPacked;
  std::vector<size_t> placed; // by offset
  for (size_t i : order) {
    const MemoryRequest &r = requests[i];
    if (r.bytes == 0)
      continue;
    const uint64_t need = aligned(r.bytes);
    uint64_t best = 0, bestGap = UINT64_MAX,
             end = 0; // `end`: behind all that live at the same time
    bool found = false;
    if (pack) {
      for (size_t j : placed) {
        const MemoryRequest &other = requests[j];
        if (other.last < r.first || r.last < other.first)
          continue;
        if (plan.offsets[j] > end) {
          const uint64_t gap = plan.offsets[j] - end;
          if (gap >= need && gap < bestGap) {
            best = end;
            bestGap = gap;
            found = true;
          }
        }
        end = std::max(end, plan.offsets[j] + aligned(other.bytes));
      }
    } else {
      end = plan.totalBytes;
    }
    plan.offsets[i] = found ? best : end;
    plan.totalBytes = std::max(plan.totalBytes, plan.offsets[i] + need);
    if (plan.totalBytes > kMaxTotal)
      return std::nullopt;
    if (pack)
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), i,
                           [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
          i);
  }
  return plan;
}

} // namespace fusec::rt

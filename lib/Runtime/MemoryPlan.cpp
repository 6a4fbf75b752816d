#include "Runtime/MemoryPlan.h"

#include "Runtime/Memory.h"

#include <algorithm>
#include <numeric>

namespace fusec::rt {

namespace {

constexpr uint64_t kMaxTotal = uint64_t{1} << 46;
// Packing takes the time of looking at each pair, and 8 bytes of memory for it.
constexpr size_t kMaxPairs = size_t{1} << 22;

} // namespace

Lifetimes::Lifetimes(const std::vector<Lifetime> &lives) : meeting(lives.size()) {
  std::vector<int32_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  auto lifeOf = [&](int32_t i) { return lives[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return lifeOf(a).first < lifeOf(b).first; });
  std::vector<int32_t> alive;
  size_t pairs = 0;
  for (int32_t i : order) {
    std::erase_if(alive, [&](int32_t j) { return lifeOf(j).last < lifeOf(i).first; });
    pairs += alive.size();
    if (pairs > kMaxPairs) {
      meeting.assign(lives.size(), {});
      known = false;
      return;
    }
    for (int32_t j : alive) {
      meeting[static_cast<size_t>(i)].push_back(j);
      meeting[static_cast<size_t>(j)].push_back(i);
    }
    alive.push_back(i);
  }
}

uint64_t MemoryPlan::gapFor(const std::vector<int32_t> &met, uint64_t bytes) {
  taken.clear();
  for (int32_t j : met)
    if (const uint64_t end = ends[static_cast<size_t>(j)]; end > 0)
      taken.emplace_back(offsets[static_cast<size_t>(j)], end);
  std::sort(taken.begin(), taken.end());
  uint64_t best = 0, bestGap = UINT64_MAX, behind = 0;
  for (const auto &[begin, end] : taken) {
    if (begin > behind && begin - behind >= bytes && begin - behind < bestGap) {
      best = behind;
      bestGap = begin - behind;
    }
    behind = std::max(behind, end);
  }
  return bestGap == UINT64_MAX ? behind : best;
}

bool MemoryPlan::pack(const Lifetimes &lifetimes, const std::vector<uint64_t> &bytes) {
  totalBytes = 0;
  offsets.assign(bytes.size(), 0);
  ends.assign(bytes.size(), 0);
  order.clear();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > kMaxTotal)
      return false;
    if (bytes[i] > 0)
      order.push_back(static_cast<int32_t>(i));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const uint64_t x = bytes[static_cast<size_t>(a)], y = bytes[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (int32_t number : order) {
    const auto i = static_cast<size_t>(number);
    const uint64_t need = aligned(bytes[i]);
    offsets[i] = lifetimes.areKnown() ? gapFor(lifetimes.metBy(i), need) : totalBytes;
    ends[i] = offsets[i] + need;
    totalBytes = std::max(totalBytes, ends[i]);
    if (totalBytes > kMaxTotal)
      return false;
  }
  return true;
}

} // namespace fusec::rt

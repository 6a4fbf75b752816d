#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fusec::rt {

/// The steps during which each of some temporaries must keep its contents.
struct Lifetime {
  int32_t first = 0, last = 0;
};

/// Tells which temporaries are in use at the same time, whatever their sizes are.
class Lifetimes {
public:
  explicit Lifetimes(const std::vector<Lifetime> &lives = {});
  size_t size() const { return meeting.size(); }
  /// False where more meet than are kept in mind.
  bool areKnown() const { return known; }
  const std::vector<int32_t> &metBy(size_t i) const { return meeting[i]; }

private:
  std::vector<std::vector<int32_t>> meeting; // by temporary: the others that it meets
  bool known = true;
};

/// Where temporaries lie.
class MemoryPlan {
public:
  /// Packs those whose lifetimes do not meet into the same memory: largest first, each into the tightest gap that is
  /// free during its life, else behind all that it meets; one behind the other where that is not known. `bytes` of
  /// each; one of none needs no memory. False when the total is over 2^46 bytes. What it needs itself it keeps for the
  /// next time.
  bool pack(const Lifetimes &lifetimes, const std::vector<uint64_t> &bytes);

  std::vector<uint64_t> offsets; // multiples of kAlign
  uint64_t totalBytes = 0;

private:
  uint64_t gapFor(const std::vector<int32_t> &met, uint64_t bytes);

  std::vector<int32_t> order;                       // largest first
  std::vector<uint64_t> ends;                       // 0: not placed yet
  std::vector<std::pair<uint64_t, uint64_t>> taken; // beginnings and ends of those that one meets
};

} // namespace fusec::rt

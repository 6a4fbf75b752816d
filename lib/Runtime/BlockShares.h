#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace fusec::rt {

/// The blocks of a phase, dealt to several threads as one range each. A thread takes its own range part by part and
/// then what others have left. The blocks of kernels that follow each other mostly cut their tensors at the same
/// places, so that a thread which keeps its place reads what it wrote itself, from its own cache.
class BlockShares {
public:
  struct Range {
    int64_t first, end;
  };

  void reserve(int32_t most) { shares = std::make_unique<Share[]>(most); }

  /// `count` ranges, at most as many as reserved, to be taken `part` blocks at a time. Nobody may be taking.
  void deal(int64_t blocks, int32_t count, int64_t part) {
    number = count;
    size = part;
    const int64_t each = blocks / count, longer = blocks % count;
    int64_t first = 0;
    for (int32_t i = 0; i < count; ++i) {
      const int64_t end = first + each + (i < longer);
      shares[i].next.store(first, std::memory_order_relaxed);
      shares[i].end = end;
      first = end;
    }
  }

  /// Blocks that nobody else gets, or false where none are left. `at` begins as the number of the taker's own range,
  /// below `count`, and is to be passed on from call to call.
  bool take(int32_t &at, Range &range) {
    for (int32_t tried = 0; tried < number; ++tried) {
      Share &share = shares[at];
      const int64_t first = share.next.fetch_add(size, std::memory_order_relaxed);
      if (first < share.end) {
        range = {first, std::min(first + size, share.end)};
        return true;
      }
      at = at + 1 == number ? 0 : at + 1;
    }
    return false;
  }

private:
  // Each on a cache line of its own.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::unique_ptr<Share[]> shares;
  int32_t number = 0;
  int64_t size = 1;
};

} // namespace fusec::rt

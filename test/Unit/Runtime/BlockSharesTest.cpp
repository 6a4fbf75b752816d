#include "Runtime/BlockShares.h"
#include "Runtime/ThreadPool.h"

#include <catch2/catch_all.hpp>

#include <mutex>
#include <random>
#include <set>
#include <vector>

using namespace fusec::rt;

TEST_CASE("shares: every block once, one's own range first and in order") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int32_t takers = 1 + static_cast<int32_t>(random() % 9);
    const int64_t blocks = takers + random() % 60, part = 1 + random() % 7;
    BlockShares shares;
    shares.reserve(9);
    shares.deal(blocks, takers, part);
    std::vector<int> hits(blocks);
    std::vector<int32_t> at(takers);
    std::vector<int64_t> last(takers, -1);
    for (int32_t t = 0; t < takers; ++t)
      at[t] = t;
    std::vector<int32_t> busy = at;
    while (!busy.empty()) {
      const size_t which = random() % busy.size();
      const int32_t taker = busy[which];
      BlockShares::Range range{};
      if (!shares.take(at[taker], range)) {
        busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      REQUIRE(range.first < range.end);
      REQUIRE(range.end - range.first <= part);
      for (int64_t block = range.first; block < range.end; ++block)
        ++hits[block];
      if (at[taker] == taker) {
        CHECK(range.first > last[taker]);
        CHECK(range.first >= blocks / takers * taker);
        last[taker] = range.first;
      } else {
        // Helping others begins when the own range is empty.
        CHECK(hits[blocks / takers * taker + std::min<int64_t>(taker, blocks % takers)] == 1);
      }
    }
    CHECK(hits == std::vector<int>(blocks, 1));
  }
}

TEST_CASE("shares: without hindrance each keeps the same blocks from phase to phase") {
  BlockShares shares;
  shares.reserve(3);
  std::vector<std::vector<int64_t>> seen;
  for (int phase = 0; phase < 2; ++phase) {
    shares.deal(10, 3, 1);
    std::vector<int64_t> firsts;
    for (int32_t taker : {2, 0, 1}) {
      BlockShares::Range range{};
      int32_t at = taker;
      REQUIRE(shares.take(at, range));
      firsts.push_back(range.first);
    }
    seen.push_back(firsts);
  }
  CHECK(seen[0] == std::vector<int64_t>{7, 0, 4});
  CHECK(seen[1] == seen[0]);
}

TEST_CASE("thread pool: each thread has a number of its own") {
  CHECK(ThreadPool::numberOfThread() == 0);
  ThreadPool pool;
  const int32_t width = pool.start(4);
  struct Seen {
    std::mutex mutex;
    std::set<int32_t> numbers;
  } seen;
  for (int job = 0; job < 200; ++job)
    pool.parallel(
        8,
        [](void *argument, int32_t) {
          Seen &seen = *static_cast<Seen *>(argument);
          std::lock_guard lock(seen.mutex);
          seen.numbers.insert(ThreadPool::numberOfThread());
        },
        &seen);
  CHECK(*seen.numbers.begin() >= 0);
  CHECK(*seen.numbers.rbegin() < width);
  CHECK(ThreadPool::numberOfThread() == 0);
}

#include "Runtime/MemoryPlan.h"
#include "Runtime/ThreadPool.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace fusec::rt;

TEST_CASE("temporaries that live at the same time never overlap, the others share") {
  std::mt19937 random(1);
  MemoryPlan plan; // what it has kept of one round changes nothing in the next
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives(random() % 40);
    std::vector<uint64_t> bytes;
    for (Lifetime &life : lives) {
      bytes.push_back(random() % 5000);
      life.first = static_cast<int32_t>(random() % 30);
      life.last = life.first + static_cast<int32_t>(random() % 6);
    }
    REQUIRE(plan.pack(Lifetimes(lives), bytes));
    REQUIRE(plan.offsets.size() == lives.size());
    for (size_t i = 0; i < lives.size(); ++i) {
      REQUIRE(plan.offsets[i] % 256 == 0);
      REQUIRE(plan.offsets[i] + bytes[i] <= std::max<uint64_t>(plan.totalBytes, bytes[i]));
      for (size_t j = 0; j < i; ++j) {
        const Lifetime &a = lives[i], &b = lives[j];
        if (bytes[i] == 0 || bytes[j] == 0 || a.last < b.first || b.last < a.first)
          continue;
        REQUIRE((plan.offsets[i] >= plan.offsets[j] + bytes[j] ||
                 plan.offsets[j] >= plan.offsets[i] + bytes[i]));
      }
    }
  }
  // A chain needs two buffers, however long it is.
  std::vector<Lifetime> chain;
  for (int32_t i = 0; i < 100; ++i)
    chain.push_back({i, i + 1});
  REQUIRE(plan.pack(Lifetimes(chain), std::vector<uint64_t>(100, 1024)));
  CHECK(plan.totalBytes == 2 * 1024);
  CHECK(!plan.pack(Lifetimes({{0, 0}}), {uint64_t{1} << 60}));
  CHECK(!plan.pack(Lifetimes({{0, 0}, {0, 0}}), {uint64_t{1} << 46, uint64_t{1} << 46}));
}

TEST_CASE("temporaries of which too many meet lie one behind the other") {
  const std::vector<Lifetime> lives(3000, {0, 1});
  const Lifetimes lifetimes(lives);
  CHECK(!lifetimes.areKnown());
  MemoryPlan plan;
  REQUIRE(plan.pack(lifetimes, std::vector<uint64_t>(lives.size(), 1)));
  CHECK(plan.totalBytes == lives.size() * 256);
  CHECK(plan.offsets.back() == (lives.size() - 1) * 256);
}

TEST_CASE("thread pool: every task once, also when threads sleep in between") {
  ThreadPool pool;
  REQUIRE(pool.start(4) >= 1);
  for (int round = 0; round < 3000; ++round) {
    std::atomic<int> hits[7] = {};
    pool.parallel(
        7, [](void *argument, int32_t i) { ++static_cast<std::atomic<int> *>(argument)[i]; }, hits);
    for (const std::atomic<int> &h : hits)
      REQUIRE(h == 1);
    if (round % 500 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("thread pool: threads end with the pool, wherever they are") {
  // Just after a job its threads are between looking for the next one and going to sleep.
  for (int i = 0; i < 4000; ++i) {
    ThreadPool pool;
    pool.start(16);
    for (int job = i % 3; job > 0; --job)
      pool.parallel(16, [](void *, int32_t) {}, nullptr);
  }
}

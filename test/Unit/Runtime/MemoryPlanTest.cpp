#include "Runtime/MemoryPlan.h"
#include "Runtime/ThreadPool.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace fusec::rt;

TEST_CASE("requests that live at the same time never overlap, the others share") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<MemoryRequest> requests(random() % 40);
    for (MemoryRequest &r : requests) {
      r.bytes = random() % 5000;
      r.first = static_cast<int32_t>(random() % 30);
      r.last = r.first + static_cast<int32_t>(random() % 6);
    }
    std::optional<MemoryPlan> plan = planMemory(requests);
    REQUIRE(plan);
    for (size_t i = 0; i < requests.size(); ++i) {
      REQUIRE(plan->offsets[i] % 256 == 0);
      REQUIRE(plan->offsets[i] + requests[i].bytes <=
              std::max<uint64_t>(plan->totalBytes, requests[i].bytes));
      for (size_t j = 0; j < i; ++j) {
        const MemoryRequest &a = requests[i], &b = requests[j];
        if (a.bytes == 0 || b.bytes == 0 || a.last < b.first || b.last < a.first)
          continue;
        REQUIRE((plan->offsets[i] >= plan->offsets[j] + b.bytes ||
                 plan->offsets[j] >= plan->offsets[i] + a.bytes));
      }
    }
  }
  // A chain needs two buffers, however long it is.
  std::vector<MemoryRequest> chain;
  for (int32_t i = 0; i < 100; ++i)
    chain.push_back({1024, i, i + 1});
  CHECK(planMemory(chain)->totalBytes == 2 * 1024);
  CHECK(!planMemory({{uint64_t{1} << 60, 0, 0}}));
  CHECK(!planMemory({{uint64_t{1} << 46, 0, 0}, {uint64_t{1} << 46, 0, 0}}));
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

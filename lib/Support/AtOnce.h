#pragma once
#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

namespace fusec {

/// Calls work(i) for 0 <= i < count, on `threads` threads at the most. What a call throws comes out here, once all
/// threads have ended.
template <typename F> void forEachAtOnce(size_t count, int threads, const F &work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i; (i = next++) < count;)
      work(i);
  };
  const size_t others = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  std::vector<std::future<void>> running; // waits for its thread when it goes
  for (size_t t = 1; t < others; ++t)
    running.push_back(std::async(std::launch::async, run));
  run();
  for (std::future<void> &other : running)
    other.get();
}

} // namespace fusec

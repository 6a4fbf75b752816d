#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace fusec::rt {

/// Threads that help the caller of parallel(). Between runs they sleep; during one they look for the next job for
/// some microseconds before they go to sleep, because the phases of a model follow each other closely.
class ThreadPool {
public:
  using Task = void (*)(void *argument, int32_t index);

  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Starts `width` - 1 threads, or fewer where the system refuses. Returns the width reached.
  int32_t start(int32_t width);
  /// task(argument, i) for i in 0 .. count-1, count < 65536; the caller takes part. Not reentrant.
  void parallel(int32_t count, Task task, void *argument);
  /// 1, 2, ... for the threads of a pool, 0 for all others.
  static int32_t numberOfThread();

private:
  void work();
  bool runOne(); // takes one task of the current job, if there is one left
  void wait(std::atomic<uint32_t> &word, uint32_t old);
  void wake(std::atomic<uint32_t> &word);

  std::vector<std::thread> threads;
  // A job: number << 32 | count << 16 | next task. A task is taken by raising `next`; the fields below do not
  // change while a task that was taken is not finished.
  std::atomic<uint64_t> ticket{0};
  std::atomic<uint32_t> jobNumber{0}; // what sleepers wait on
  std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> unfinished{0};
  std::atomic<bool> callerSleeps{false};
  std::atomic<bool> stop{false};
  Task task = nullptr;
  void *argument = nullptr;
};

/// Processors that this process may run on.
int32_t availableProcessors();

} // namespace fusec::rt

#include "Runtime/ThreadPool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <x86intrin.h>

namespace fusec::rt {

namespace {

constexpr uint64_t kSpinCycles = 40000; // about 15 us
constexpr uint64_t kField = 0xffff;
thread_local int32_t threadNumber = 0;

uint32_t countOf(uint64_t t) { return (t >> 16) & kField; }
uint32_t nextOf(uint64_t t) { return t & kField; }

} // namespace

int32_t availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

void ThreadPool::wait(std::atomic<uint32_t> &word, uint32_t old) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
}
void ThreadPool::wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

int32_t ThreadPool::start(int32_t width) {
  try {
    while (static_cast<int32_t>(threads.size()) + 1 < width)
      threads.emplace_back([this, number = static_cast<int32_t>(threads.size()) + 1] {
        threadNumber = number;
        work();
      });
  } catch (const std::system_error &) {
    // Fewer threads compute the same.
  }
  return static_cast<int32_t>(threads.size()) + 1;
}

ThreadPool::~ThreadPool() {
  stop = true;
  jobNumber.fetch_add(1);
  wake(jobNumber);
  for (std::thread &t : threads)
    t.join();
}

int32_t ThreadPool::numberOfThread() { return threadNumber; }

bool ThreadPool::runOne() {
  uint64_t t = ticket.load(std::memory_order_acquire);
  while (nextOf(t) < countOf(t)) {
    if (!ticket.compare_exchange_weak(t, t + 1, std::memory_order_acq_rel))
      continue;
    task(argument, static_cast<int32_t>(nextOf(t)));
    if (unfinished.fetch_sub(1) == 1 && callerSleeps.load())
      wake(unfinished);
    return true;
  }
  return false;
}

void ThreadPool::work() {
  for (;;) {
    if (runOne())
      continue;
    const uint32_t seen = jobNumber.load();
    // What came before `seen` was read raises it no more: the end of the pool, or a job.
    if (stop.load())
      return;
    if (runOne())
      continue;
    const uint64_t start = __rdtsc();
    while (jobNumber.load(std::memory_order_relaxed) == seen && __rdtsc() - start < kSpinCycles)
      _mm_pause();
    if (jobNumber.load() != seen)
      continue;
    sleepers.fetch_add(1);
    wait(jobNumber, seen);
    sleepers.fetch_sub(1);
  }
}

void ThreadPool::parallel(int32_t count, Task newTask, void *newArgument) {
  task = newTask;
  argument = newArgument;
  unfinished.store(static_cast<uint32_t>(count));
  const uint32_t number = jobNumber.load(std::memory_order_relaxed) + 1;
  ticket.store((uint64_t{number} << 32) | (uint64_t(count) << 16), std::memory_order_release);
  jobNumber.store(number);
  if (sleepers.load() > 0)
    wake(jobNumber);
  while (runOne()) {
  }
  const uint64_t start = __rdtsc();
  while (unfinished.load() != 0 && __rdtsc() - start < kSpinCycles)
    _mm_pause();
  if (unfinished.load() == 0)
    return;
  callerSleeps.store(true);
  for (uint32_t left = unfinished.load(); left != 0; left = unfinished.load())
    wait(unfinished, left);
  callerSleeps.store(false);
}

} // namespace fusec::rt

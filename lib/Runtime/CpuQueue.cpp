#include "Runtime/CpuQueue.h"

#include "Runtime/BlockShares.h"
#include "Runtime/Error.h"
#include "Runtime/Memory.h"
#include "Runtime/Profile.h"
#include "Runtime/Workers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <x86intrin.h>

namespace fusec::rt {

namespace {

// A phase that takes less than this on one thread is not worth to wake others for (about 8 us).
constexpr int64_t kParallelCycles = 20000;
// Parts that each thread takes its share of the blocks in: others help one that is interrupted.
constexpr int64_t kPartsPerThread = 4;

class CpuQueue final : public Queue {
public:
  explicit CpuQueue(const CpuCode &code) : code(code) {}
  fusert_status init(const QueueOptions &options);

  fusert_status begin() override { return FUSERT_OK; }
  fusert_status launch(Launch &launch) override;
  fusert_status copy(void *to, const void *from, size_t bytes, Direction) override {
    std::memcpy(to, from, bytes);
    return FUSERT_OK;
  }
  fusert_status finish() override { return FUSERT_OK; }
  fusert_status end() override { return FUSERT_OK; }
  std::string countersJson() override { return profile.json(); }

private:
  /// One phase of a launch, shared by the threads that work on it.
  struct Work {
    const Launch *launch;
    fusec_cpu_kernel entry;
    int32_t phase, tasks;
    std::atomic<int32_t> status;
  };
  void runBlocks(Work &work, int32_t worker);
  int32_t runAlone(const Launch &launch, fusec_cpu_kernel entry, int32_t phase);
  int32_t runShared(const Launch &launch, fusec_cpu_kernel entry, int32_t phase, int32_t tasks);
  int32_t runPhase(Launch &launch, fusec_cpu_kernel entry, int32_t phase);

  const CpuCode &code;
  Workers workers;
  BlockShares shares; // of the phase that is being run
  HostBlock scratch;
  size_t scratchStride = 0;
  bool counting = false;
  Profile profile;
};

fusert_status CpuQueue::init(const QueueOptions &options) {
  counting = options.counters;
  workers.start(options, 1024);
  shares.reserve(workers.width());
  // A cache line between two workers' scratch, whatever the kernels ask for.
  scratchStride = (static_cast<size_t>(code.scratchBytes) + 127) / 64 * 64;
  profile.reset(code.program->kernels.size());
  return scratch.allocate(options.memory,
                          code.scratchBytes > 0 ? scratchStride * workers.width() : 0);
}

void CpuQueue::runBlocks(Work &work, int32_t worker) {
  fusec_kernel_args args{work.launch->buffers.data(), work.launch->dims.data(), nullptr};
  if (scratch.data())
    args.scratch = static_cast<char *>(scratch.data()) + scratchStride * worker;
  int32_t at = workers.home(worker) % work.tasks;
  BlockShares::Range range;
  while (work.status.load(std::memory_order_relaxed) == FUSEC_KERNEL_OK && shares.take(at, range))
    for (int64_t block = range.first; block < range.end; ++block)
      if (int32_t status = work.entry(&args, work.phase, block); status != FUSEC_KERNEL_OK) {
        work.status.store(status, std::memory_order_relaxed);
        return;
      }
}

/// On the calling thread.
int32_t CpuQueue::runAlone(const Launch &launch, fusec_cpu_kernel entry, int32_t phase) {
  const fusec_kernel_args args{launch.buffers.data(), launch.dims.data(), scratch.data()};
  for (int64_t block = 0; block < launch.grids[phase]; ++block)
    if (int32_t status = entry(&args, phase, block); status != FUSEC_KERNEL_OK)
      return status;
  return FUSEC_KERNEL_OK;
}

/// On that many threads.
int32_t CpuQueue::runShared(const Launch &launch, fusec_cpu_kernel entry, int32_t phase,
                            int32_t tasks) {
  const int64_t blocks = launch.grids[phase];
  Work work{&launch, entry, phase, tasks, {FUSEC_KERNEL_OK}};
  shares.deal(blocks, tasks, std::max<int64_t>(1, blocks / (tasks * kPartsPerThread)));
  auto task = [&](int32_t worker) { runBlocks(work, worker); };
  workers.parallel(tasks, task);
  return work.status;
}

int32_t CpuQueue::runPhase(Launch &launch, fusec_cpu_kernel entry, int32_t phase) {
  const int32_t tasks =
      static_cast<int32_t>(std::min<int64_t>(workers.width(), launch.grids[phase]));
  if (tasks == 1)
    return runAlone(launch, entry, phase);
  auto run = [&](bool sharing, int64_t &cycles) {
    const uint64_t start = __rdtsc();
    const int32_t status =
        sharing ? runShared(launch, entry, phase, tasks) : runAlone(launch, entry, phase);
    cycles = static_cast<int64_t>(__rdtsc() - start);
    return status;
  };
  int64_t cycles = 0;
  if (phase >= launch.roundsFirst && phase < launch.roundsLast) {
    ParallelTrial &trial = launch.trials[phase];
    const int32_t status = run(trial.shares(), cycles);
    trial.ran(cycles);
    return status;
  }
  int64_t &estimate = launch.cycles[phase];
  // An estimate only falls: one that is low enough is not taken again, since reading the clock costs as much as a
  // small kernel.
  if (estimate >= 0 && estimate < kParallelCycles)
    return runAlone(launch, entry, phase);
  const int32_t status = run(true, cycles);
  // The lowest time seen is the one without interruptions.
  estimate = estimate < 0 ? cycles * tasks : std::min(estimate, cycles * tasks);
  return status;
}

fusert_status CpuQueue::launch(Launch &launch) {
  fusec_cpu_kernel entry = code.entries[launch.kernel];
  const uint64_t start = counting ? Profile::now() : 0;
  FUSERT_TRY(forEachPhase(launch, [&](int32_t phase) {
    const int32_t status = runPhase(launch, entry, phase);
    return status == FUSEC_KERNEL_OK ? FUSERT_OK : kernelFailed(*code.program, launch, status);
  }));
  if (counting)
    profile.add(launch, code.program->kernels[launch.kernel], Profile::now() - start);
  return FUSERT_OK;
}

} // namespace

fusert_status createCpuQueue(const CpuCode &code, const QueueOptions &options,
                             std::unique_ptr<Queue> &queue) {
  auto q = std::make_unique<CpuQueue>(code);
  FUSERT_TRY(q->init(options));
  queue = std::move(q);
  return FUSERT_OK;
}

} // namespace fusec::rt

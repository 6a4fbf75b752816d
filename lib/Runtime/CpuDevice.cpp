#include "Runtime/CodeImage.h"
#include "Runtime/CpuFeatures.h"
#include "Runtime/Device.h"
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
// Parts that each thread's share of the blocks is cut into, so that an interrupted thread does not hold up the rest.
constexpr int64_t kPartsPerThread = 4;

class CpuDevice;

class CpuQueue final : public Queue {
public:
  explicit CpuQueue(const CpuDevice &device) : device(device) {}
  fusert_status init(const QueueOptions &options);

  fusert_status begin() override { return FUSERT_OK; }
  fusert_status launch(Launch &launch) override;
  fusert_status copy(void *to, const void *from, size_t bytes, Direction) override {
    std::memcpy(to, from, bytes);
    return FUSERT_OK;
  }
  fusert_status finish() override { return FUSERT_OK; }
  void end() override {}
  std::string countersJson() override { return profile.json(); }

private:
  /// One phase of a launch, shared by the threads that work on it.
  struct Work {
    const Launch *launch;
    fusec_cpu_kernel entry;
    int32_t phase;
    int64_t blocks, part;
    std::atomic<int64_t> next;
    std::atomic<int32_t> status;
  };
  void runBlocks(Work &work, int32_t worker);
  int32_t runAlone(const Launch &launch, fusec_cpu_kernel entry, int32_t phase);
  int32_t runPhase(Launch &launch, fusec_cpu_kernel entry, int32_t phase);

  const CpuDevice &device;
  Workers workers;
  HostBlock scratch;
  size_t scratchStride = 0;
  bool counting = false;
  Profile profile;
};

class CpuDevice final : public Device {
public:
  fusert_status load(const bundle::Program &p, const std::vector<bundle::Weight> &w) override {
    if (levelOfTarget(p.target) > cpuLevel())
      return fail(FUSERT_UNSUPPORTED, "the program for '" + p.target +
                                          "' needs a newer processor: this one is x86-64-v" +
                                          std::to_string(cpuLevel()));
    program = &p;
    weights = &w;
    if (!p.images.empty()) // a model of copies and branches alone has no kernels
      FUSERT_TRY(code.load(p.images.front().code));
    for (const bundle::Kernel &k : p.kernels) {
      void *f = code.function(k.symbol);
      if (!f)
        return fail(FUSERT_BAD_BUNDLE, "the code has no function '" + k.symbol + "'");
      entries.push_back(reinterpret_cast<fusec_cpu_kernel>(f));
      scratchBytes = std::max(scratchBytes, k.scratchBytes);
    }
    return FUSERT_OK;
  }
  bool hostMemory() const override { return true; }
  void *weight(int32_t index) const override {
    return const_cast<uint8_t *>((*weights)[index].bytes);
  }
  fusert_status allocate(size_t, void **) override {
    return fail(FUSERT_INTERNAL, "a CPU uses host memory");
  }
  void release(void *) override {}
  bool isDevicePointer(const void *) const override { return true; }
  fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) override {
    if (options.simSeed != 0)
      return fail(FUSERT_INVALID_ARGUMENT, "a seed is for sim targets");
    auto q = std::make_unique<CpuQueue>(*this);
    FUSERT_TRY(q->init(options));
    queue = std::move(q);
    return FUSERT_OK;
  }

  const bundle::Program *program = nullptr;
  std::vector<fusec_cpu_kernel> entries;
  int64_t scratchBytes = 0;

private:
  const std::vector<bundle::Weight> *weights = nullptr;
  CodeImage code;
};

fusert_status CpuQueue::init(const QueueOptions &options) {
  counting = options.counters;
  workers.start(options, 1024);
  // A cache line between two workers' scratch, whatever the kernels ask for.
  scratchStride = (static_cast<size_t>(device.scratchBytes) + 127) / 64 * 64;
  profile.reset(device.program->kernels.size());
  return scratch.allocate(options.memory,
                          device.scratchBytes > 0 ? scratchStride * workers.width() : 0);
}

void CpuQueue::runBlocks(Work &work, int32_t worker) {
  fusec_kernel_args args{work.launch->buffers.data(), work.launch->dims.data(), nullptr};
  if (scratch.data())
    args.scratch = static_cast<char *>(scratch.data()) + scratchStride * worker;
  while (work.status.load(std::memory_order_relaxed) == FUSEC_KERNEL_OK) {
    const int64_t first = work.next.fetch_add(work.part, std::memory_order_relaxed);
    if (first >= work.blocks)
      return;
    const int64_t end = std::min(first + work.part, work.blocks);
    for (int64_t block = first; block < end; ++block)
      if (int32_t status = work.entry(&args, work.phase, block); status != FUSEC_KERNEL_OK) {
        work.status.store(status, std::memory_order_relaxed);
        return;
      }
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

int32_t CpuQueue::runPhase(Launch &launch, fusec_cpu_kernel entry, int32_t phase) {
  const int64_t blocks = launch.grids[phase];
  int64_t &estimate = launch.cycles[phase];
  // An estimate only falls: one that is low enough is not taken again, since reading the clock costs as much as a
  // small kernel.
  if (workers.width() == 1 || blocks == 1 || (estimate >= 0 && estimate < kParallelCycles))
    return runAlone(launch, entry, phase);
  const uint64_t start = __rdtsc();
  const int32_t tasks = static_cast<int32_t>(std::min<int64_t>(workers.width(), blocks));
  Work work{&launch, entry, phase, blocks, 1, {0}, {FUSEC_KERNEL_OK}};
  work.part = std::max<int64_t>(1, blocks / (tasks * kPartsPerThread));
  auto task = [&](int32_t worker) { runBlocks(work, worker); };
  workers.parallel(tasks, task);
  // The lowest time seen is the one without interruptions.
  const int64_t spent = static_cast<int64_t>(__rdtsc() - start) * tasks;
  estimate = estimate < 0 ? spent : std::min(estimate, spent);
  return work.status;
}

fusert_status CpuQueue::launch(Launch &launch) {
  fusec_cpu_kernel entry = device.entries[launch.kernel];
  const uint64_t start = counting ? Profile::now() : 0;
  for (size_t phase = 0; phase < launch.grids.size(); ++phase) {
    if (launch.grids[phase] == 0)
      continue;
    if (int32_t status = runPhase(launch, entry, static_cast<int32_t>(phase));
        status != FUSEC_KERNEL_OK)
      return kernelFailed(*device.program, launch, status);
  }
  if (counting)
    profile.add(launch, device.program->kernels[launch.kernel], Profile::now() - start);
  return FUSERT_OK;
}

} // namespace

std::unique_ptr<Device> makeCpuDevice(int32_t) { return std::make_unique<CpuDevice>(); }

} // namespace fusec::rt

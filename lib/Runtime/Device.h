#pragma once
#include "Bundle/Model.h"
#include "Runtime/Memory.h"
#include "Runtime/ParallelTrial.h"
#include "fusec/bundle_format.h"
#include "fusec/runtime.h"

#include <memory>
#include <string>
#include <vector>

namespace fusec::rt {

/// A kernel launch with everything resolved when shapes are set.
struct Launch {
  int32_t kernel = 0;          // index into Program::kernels
  std::vector<void *> buffers; // [P]; entries of the model's inputs and outputs are set at each run
  std::vector<int64_t> bufferBytes; // [P]
  std::vector<int64_t> dims;        // [D], and the number of the round where the kernel has rounds
  std::vector<int64_t> grids;       // blocks of each phase
  int64_t rounds = 1;               // of phases roundsFirst to roundsLast (exclusive)
  int32_t roundsFirst = 0, roundsLast = 0;
  std::vector<int64_t> cycles;       // CPU: estimate for each phase on one thread, -1 unknown
  std::vector<ParallelTrial> trials; // CPU: of each phase; used of those in rounds
  const std::string *step = nullptr; // name of the step, for messages
};

/// Calls run(phase) for the phases in the order in which they run, rounds included, as long as it gives FUSERT_OK.
template <typename F> fusert_status forEachPhase(Launch &launch, F run) {
  const bool again = launch.roundsFirst != launch.roundsLast;
  const auto phases = static_cast<int32_t>(launch.grids.size());
  fusert_status status = FUSERT_OK;
  auto some = [&](int32_t first, int32_t last) {
    for (int32_t phase = first; phase < last && status == FUSERT_OK; ++phase)
      if (launch.grids[static_cast<size_t>(phase)] > 0)
        status = run(phase);
  };
  some(0, launch.roundsFirst);
  for (int64_t round = 0; again && round < launch.rounds && status == FUSERT_OK; ++round) {
    launch.dims.back() = round;
    some(launch.roundsFirst, launch.roundsLast);
  }
  some(launch.roundsLast, phases);
  return status;
}

enum class Direction { ToDevice, ToHost, OnDevice };

/// What one context does on its device, in order.
class Queue {
public:
  virtual ~Queue() = default;
  /// Begins a run.
  virtual fusert_status begin() = 0;
  virtual fusert_status launch(Launch &launch) = 0;
  virtual fusert_status copy(void *to, const void *from, size_t bytes, Direction direction) = 0;
  /// Waits for everything before; the only call that may report what a launch or copy did wrong. May be called
  /// outside of a run, when a caller's stream may be gone already.
  virtual fusert_status finish() = 0;
  /// Makes what follows wait for what the caller has put on its default stream, if the queue has a stream of its own.
  virtual fusert_status followDefaultStream() { return FUSERT_OK; }
  /// Ends a run. Called after begin(), whatever happened since.
  virtual fusert_status end() = 0;
  virtual std::string countersJson() = 0;
};

struct QueueOptions {
  int32_t threads = 0;
  bool counters = false;
  bool ownPool = true;
  fusert_thread_pool pool{};
  fusert_allocator memory{};
  void *stream = nullptr;
  uint64_t simSeed = 0;
};

/// One program of a bundle loaded on one device. Immutable after load().
class Device {
public:
  virtual ~Device() = default;
  /// Loads the code and uploads the weights. `program`, one of the model's, and `model` outlive the device.
  virtual fusert_status load(const bundle::Program &program, const bundle::Model &model) = 0;
  /// After a load() that the driver is too old for: the lowest version that would do; 0: that was not the reason.
  virtual int32_t driverNeeded() const { return 0; }
  virtual bool hostMemory() const = 0; // kernels read and write host memory
  virtual void *weight(int32_t index) const = 0;
  virtual fusert_status allocate(size_t bytes, void **memory) = 0; // only where !hostMemory()
  virtual void release(void *memory) = 0;
  /// Whether kernels can use memory as it is; refuses that of another device. `what` names it in messages.
  virtual fusert_status findMemory(const void *p, const std::string &what,
                                   bool &ofDevice) const = 0;
  /// Called at the start of a run for memory that its kernels have to write before they read it.
  virtual void poison(void *, size_t) const {}
  virtual fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) = 0;
};

/// Memory that kernels use, of the host or of the device; it only grows.
class KernelMemory {
public:
  KernelMemory() = default;
  KernelMemory(KernelMemory &&o) noexcept
      : ofHost(std::move(o.ofHost)), device(std::exchange(o.device, nullptr)),
        ofDevice(std::exchange(o.ofDevice, nullptr)), deviceBytes(std::exchange(o.deviceBytes, 0)) {
  }
  ~KernelMemory() { release(); }
  /// Makes it at least so large; what it held may be gone.
  fusert_status grow(Device &of, const fusert_allocator &allocator, size_t bytes);
  void release();
  void *data() const { return ofDevice ? ofDevice : ofHost.data(); }

private:
  HostBlock ofHost;
  Device *device = nullptr; // whose `ofDevice` is
  void *ofDevice = nullptr;
  size_t deviceBytes = 0;
};

/// The device table: one row a kind of target.
struct DeviceKind {
  const char *name;
  const char *any; // stands for the best program that the device loads; null: has no such word
  bool (*serves)(const std::string &target);
  std::unique_ptr<Device> (*make)(int32_t ordinal);
};
const DeviceKind *findDeviceKind(const std::string &target);
const DeviceKind *findDeviceKindByWord(const std::string &any);

std::unique_ptr<Device> makeCpuDevice(int32_t ordinal);
std::unique_ptr<Device> makeSimDevice(int32_t ordinal);
std::unique_ptr<Device> makeCudaDevice(int32_t ordinal);
std::unique_ptr<Device> makeHipDevice(int32_t ordinal);

} // namespace fusec::rt

#pragma once
#include "Runtime/Device.h"
#include "Runtime/GpuApi.h"

#include <atomic>

namespace fusec::rt {

/// A GPU by way of its vendor's driver API.
class GpuDevice final : public Device {
public:
  GpuDevice(GpuVendor vendor, int32_t ordinal) : vendor(vendor), ordinal(ordinal) {}
  ~GpuDevice() override;

  fusert_status load(const bundle::Program &program, const bundle::Model &model) override;
  int32_t driverNeeded() const override { return neededVersion; }
  bool hostMemory() const override { return false; }
  void *weight(int32_t index) const override {
    return reinterpret_cast<void *>(weightBase + weightOffsets[index]);
  }
  fusert_status allocate(size_t bytes, void **memory) override;
  void release(void *memory) override;
  fusert_status findMemory(const void *p, const std::string &what, bool &ofDevice) const override;
  fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) override;

  /// Status and message for a driver call that failed; remembers when the device is lost.
  fusert_status check(int error, const char *what) const;

  const GpuVendor vendor;
  const int32_t ordinal;
  const GpuApi *api = nullptr;
  GpuApi::Handle context = nullptr;
  const bundle::Program *program = nullptr;
  std::vector<std::vector<GpuApi::Handle>> entries; // [kernel][phase]
  /// Entry for all phases of a kernel, and how many of its blocks the device holds at once; 0: the phases are launched
  /// one after the other.
  struct GridEntry {
    GpuApi::Handle function = nullptr;
    int64_t resident = 0;
  };
  std::vector<GridEntry> gridEntries; // [kernel]
  mutable std::atomic<bool> lost{false};

private:
  fusert_status openDevice();
  fusert_status loadModule();
  fusert_status findGridEntries();
  fusert_status allowShared(GpuApi::Handle function, const bundle::Kernel &kernel, int64_t bytes);
  fusert_status uploadWeights(const bundle::Model &model);
  fusert_status findNvidiaMemory(const void *p, const std::string &what, bool &ofDevice) const;
  fusert_status findAmdMemory(const void *p, const std::string &what, bool &ofDevice) const;
  fusert_status onDevice(int which, const std::string &what) const;
  int device = 0, driverVersion = 0, neededVersion = 0;
  int mostShared = 0; // bytes that a launch may give a block; 0: not asked yet
  bool opened = false;
  GpuApi::Handle module = nullptr;
  GpuApi::Pointer weightBase = 0;
  std::vector<uint64_t> weightOffsets;
};

/// Makes the device current for the calling thread, and what was current before afterwards.
class CurrentGpu {
public:
  explicit CurrentGpu(const GpuDevice &device);
  ~CurrentGpu();
  CurrentGpu(const CurrentGpu &) = delete;
  CurrentGpu &operator=(const CurrentGpu &) = delete;
  int error() const { return status; }

private:
  const GpuDevice &device;
  int status = 0, previous = 0;
};

} // namespace fusec::rt

#include "Runtime/CodeImage.h"
#include "Runtime/Error.h"
#include "Runtime/Profile.h"
#include "Runtime/SimBlock.h"

#include <cstring>

namespace fusec::rt {

namespace {

class SimDevice final : public Device {
public:
  fusert_status load(const bundle::Program &p, const std::vector<bundle::Weight> &w) override;
  bool hostMemory() const override { return true; }
  void *weight(int32_t index) const override {
    return const_cast<uint8_t *>((*weights)[index].bytes);
  }
  fusert_status allocate(size_t, void **) override {
    return fail(FUSERT_INTERNAL, "sim uses host memory");
  }
  void release(void *) override {}
  bool isDevicePointer(const void *) const override { return true; }
  fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) override;

  const bundle::Program *program = nullptr;
  std::vector<std::vector<void *>> entries; // [kernel][phase]

private:
  const std::vector<bundle::Weight> *weights = nullptr;
  CodeImage code;
};

class SimQueue final : public Queue {
public:
  SimQueue(const SimDevice &device, bool counting)
      : device(device), counting(counting), runner(counting),
        counts(device.program->kernels.size()) {}
  fusert_status begin() override { return FUSERT_OK; }
  fusert_status launch(Launch &l) override {
    const bundle::Kernel &k = device.program->kernels[l.kernel];
    SimCounts &c = counts[static_cast<size_t>(l.kernel)];
    ++c.launches;
    for (size_t phase = 0; phase < l.grids.size(); ++phase) {
      if (l.grids[phase] == 0)
        continue;
      FUSERT_TRY(
          runner.startPhase(k, static_cast<int32_t>(phase), l, device.entries[l.kernel][phase], c));
      for (int64_t block = 0; block < l.grids[phase]; ++block)
        if (fusert_status status = runner.runBlock(block); status != FUSERT_OK)
          return status == FUSERT_OUT_OF_RANGE
                     ? kernelFailed(*device.program, l, runner.kernelStatus())
                     : status;
    }
    return FUSERT_OK;
  }
  fusert_status copy(void *to, const void *from, size_t bytes, Direction) override {
    std::memcpy(to, from, bytes);
    return FUSERT_OK;
  }
  fusert_status finish() override { return FUSERT_OK; }
  void end() override {}
  std::string countersJson() override { return simCountersJson(*device.program, counts); }

private:
  const SimDevice &device;
  const bool counting;
  SimBlockRunner runner;
  std::vector<SimCounts> counts;
};

fusert_status SimDevice::load(const bundle::Program &p, const std::vector<bundle::Weight> &w) {
  program = &p;
  weights = &w;
  if (!p.images.empty())
    FUSERT_TRY(code.load(p.images.front().code));
  for (const bundle::Kernel &k : p.kernels) {
    entries.emplace_back();
    for (size_t phase = 0; phase < k.grids.size(); ++phase) {
      const std::string name = k.symbol + "_p" + std::to_string(phase);
      entries.back().push_back(code.function(name));
      if (!entries.back().back())
        return fail(FUSERT_BAD_BUNDLE, "the code has no function '" + name + "'");
    }
  }
  return FUSERT_OK;
}

fusert_status SimDevice::createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) {
  queue = std::make_unique<SimQueue>(*this, options.counters);
  return FUSERT_OK;
}

} // namespace

std::unique_ptr<Device> makeSimDevice(int32_t) { return std::make_unique<SimDevice>(); }

} // namespace fusec::rt

#include "Runtime/CodeImage.h"
#include "Runtime/CpuFeatures.h"
#include "Runtime/CpuQueue.h"
#include "Runtime/Error.h"

#include <algorithm>

namespace fusec::rt {

namespace {

class CpuDevice final : public Device {
public:
  fusert_status load(const bundle::Program &p, const bundle::Model &model) override {
    if (levelOfTarget(p.target) > cpuLevel())
      return fail(FUSERT_UNSUPPORTED, "the program for '" + p.target +
                                          "' needs a newer processor: this one is x86-64-v" +
                                          std::to_string(cpuLevel()));
    code.program = &p;
    weights = &model.weights;
    if (!p.images.empty()) // a model of copies and branches alone has no kernels
      FUSERT_TRY(image.load(p.images.front().code));
    for (const bundle::Kernel &k : p.kernels) {
      void *f = image.function(k.symbol);
      if (!f)
        return fail(FUSERT_BAD_BUNDLE, "the code has no function '" + k.symbol + "'");
      code.entries.push_back(reinterpret_cast<fusec_cpu_kernel>(f));
      code.scratchBytes = std::max(code.scratchBytes, k.scratchBytes);
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
  fusert_status findMemory(const void *, const std::string &, bool &ofDevice) const override {
    ofDevice = true;
    return FUSERT_OK;
  }
  fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) override {
    if (options.simSeed != 0)
      return fail(FUSERT_INVALID_ARGUMENT, "a seed is for sim targets");
    return createCpuQueue(code, options, queue);
  }

private:
  const std::vector<bundle::Weight> *weights = nullptr;
  CodeImage image;
  CpuCode code;
};

} // namespace

std::unique_ptr<Device> makeCpuDevice(int32_t) { return std::make_unique<CpuDevice>(); }

} // namespace fusec::rt

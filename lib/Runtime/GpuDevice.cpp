// NVIDIA and AMD GPUs by way of the vendor's driver API.
#include "Runtime/Device.h"
#include "Runtime/Error.h"
#include "Runtime/GpuApi.h"
#include "Runtime/Memory.h"

#include <algorithm>
#include <atomic>

namespace fusec::rt {

namespace {

class GpuDevice;

/// Makes the device current for the calling thread, and what was current before afterwards.
class Current {
public:
  explicit Current(const GpuDevice &device);
  ~Current();
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;
  int error() const { return status; }

private:
  const GpuDevice &device;
  int status = 0, previous = 0;
};

class GpuDevice final : public Device {
public:
  GpuDevice(GpuVendor vendor, int32_t ordinal) : vendor(vendor), ordinal(ordinal) {}
  ~GpuDevice() override;

  fusert_status load(const bundle::Program &program,
                     const std::vector<bundle::Weight> &weights) override;
  bool hostMemory() const override { return false; }
  void *weight(int32_t index) const override {
    return reinterpret_cast<void *>(weightBase + weightOffsets[index]);
  }
  fusert_status allocate(size_t bytes, void **memory) override;
  void release(void *memory) override;
  bool isDevicePointer(const void *p) const override;
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
  fusert_status uploadWeights(const std::vector<bundle::Weight> &weights);
  int device = 0;
  bool opened = false;
  GpuApi::Handle module = nullptr;
  GpuApi::Pointer weightBase = 0;
  std::vector<uint64_t> weightOffsets;
};

Current::Current(const GpuDevice &d) : device(d) {
  if (d.vendor == GpuVendor::Nvidia) {
    status = d.api->pushContext(d.context);
    return;
  }
  status = d.api->getDevice(&previous);
  if (status == 0 && previous != d.ordinal)
    status = d.api->setDevice(d.ordinal);
}

Current::~Current() {
  if (status != 0)
    return;
  GpuApi::Handle popped;
  if (device.vendor == GpuVendor::Nvidia)
    device.api->popContext(&popped);
  else if (previous != device.ordinal)
    device.api->setDevice(previous);
}

fusert_status GpuDevice::check(int error, const char *what) const {
  if (isStickyGpuError(error))
    lost = true;
  return checkGpu(error, what);
}

fusert_status GpuDevice::openDevice() {
  FUSERT_TRY(openGpuApi(vendor, &api));
  FUSERT_TRY(check(api->init(0), "starting the driver"));
  int count = 0;
  FUSERT_TRY(check(api->deviceCount(&count), "counting devices"));
  if (ordinal >= count)
    return fail(FUSERT_UNAVAILABLE, "there is no GPU number " + std::to_string(ordinal) +
                                        ", the driver has " + std::to_string(count));
  FUSERT_TRY(check(api->deviceGet(&device, ordinal), "opening the device"));
  if (vendor == GpuVendor::Nvidia)
    FUSERT_TRY(check(api->retainContext(&context, device), "making a context"));
  opened = true;
  return FUSERT_OK;
}

fusert_status GpuDevice::load(const bundle::Program &p,
                              const std::vector<bundle::Weight> &weights) {
  program = &p;
  FUSERT_TRY(openDevice());
  Current current(*this);
  FUSERT_TRY(check(current.error(), "making the device current"));
  if (!p.images.empty())
    FUSERT_TRY(loadModule());
  return uploadWeights(weights);
}

fusert_status GpuDevice::loadModule() {
  int version = 0;
  FUSERT_TRY(check(api->driverVersion(&version), "asking for the driver's version"));
  int error = 0, lowest = 0;
  for (const bundle::Image &image : program->images) {
    if (image.minDriver > version) {
      lowest = lowest == 0 ? image.minDriver : std::min(lowest, image.minDriver);
      continue;
    }
    // PTX is text and must end with a zero byte.
    std::vector<uint8_t> bytes = image.code;
    if (image.kind == bundle::ImageKind::Ptx)
      bytes.push_back(0);
    error = api->moduleLoad(&module, bytes.data());
    if (error == 0)
      break;
    module = nullptr;
    if (!isImageGpuError(error))
      return check(error, "loading the kernels");
  }
  if (!module && error == 0)
    return fail(FUSERT_UNAVAILABLE, "the driver is too old: it has version " +
                                        std::to_string(version) + ", version " +
                                        std::to_string(lowest) + " is needed");
  if (!module)
    return fail(FUSERT_UNSUPPORTED, "the program for '" + program->target +
                                        "' does not run on GPU number " + std::to_string(ordinal) +
                                        " (driver error " + std::to_string(error) +
                                        "). Compile for this GPU's target");
  for (const bundle::Kernel &k : program->kernels) {
    entries.emplace_back();
    for (size_t phase = 0; phase < k.grids.size(); ++phase) {
      const std::string name = k.symbol + "_p" + std::to_string(phase);
      GpuApi::Handle function = nullptr;
      FUSERT_TRY(check(api->moduleFunction(&function, module, name.c_str()),
                       ("finding kernel '" + name + "'").c_str()));
      entries.back().push_back(function);
    }
  }
  return findGridEntries();
}

/// The driver says how many blocks there is room for; other work on the device does not take it away, since a
/// cooperative launch starts all of them or none.
fusert_status GpuDevice::findGridEntries() {
  // CUdevice_attribute of cuda.h
  constexpr int kMultiprocessors = 16, kCooperativeLaunch = 95;
  gridEntries.resize(program->kernels.size());
  if (vendor != GpuVendor::Nvidia)
    return FUSERT_OK;
  int cores = 0, cooperative = 0;
  for (size_t i = 0; i < program->kernels.size(); ++i) {
    const bundle::Kernel &k = program->kernels[i];
    if (!k.gridBarrier)
      continue;
    if (cores == 0) {
      FUSERT_TRY(check(api->deviceAttribute(&cores, kMultiprocessors, device),
                       "asking for the number of cores"));
      FUSERT_TRY(check(api->deviceAttribute(&cooperative, kCooperativeLaunch, device),
                       "asking for cooperative launches"));
      if (cooperative == 0)
        return FUSERT_OK;
    }
    const std::string name = k.symbol + "_grid";
    GridEntry entry;
    FUSERT_TRY(check(api->moduleFunction(&entry.function, module, name.c_str()),
                     ("finding kernel '" + name + "'").c_str()));
    int ofCore = 0;
    FUSERT_TRY(check(api->residentBlocks(&ofCore, entry.function, k.units * k.lanes, 0),
                     ("asking for room for kernel '" + name + "'").c_str()));
    entry.resident = int64_t{ofCore} * cores;
    gridEntries[i] = entry;
  }
  return FUSERT_OK;
}

fusert_status GpuDevice::uploadWeights(const std::vector<bundle::Weight> &weights) {
  std::vector<bool> used(weights.size(),
                         false); // other programs of the bundle may have weights of their own
  for (const bundle::Tensor &t : program->tensors)
    if (t.weight >= 0)
      used[t.weight] = true;
  uint64_t total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    weightOffsets.push_back(total);
    if (used[i])
      total += (static_cast<uint64_t>(weights[i].sizeBytes) + kAlign - 1) / kAlign * kAlign;
  }
  if (total == 0)
    return FUSERT_OK;
  FUSERT_TRY(check(api->allocate(&weightBase, total), "allocating the weights"));
  for (size_t i = 0; i < weights.size(); ++i)
    if (used[i] && weights[i].sizeBytes > 0)
      FUSERT_TRY(check(api->upload(weightBase + weightOffsets[i], weights[i].bytes,
                                   static_cast<size_t>(weights[i].sizeBytes)),
                       "uploading the weights"));
  return FUSERT_OK;
}

GpuDevice::~GpuDevice() {
  if (!opened)
    return;
  {
    Current current(*this);
    if (weightBase)
      api->release(weightBase);
    if (module)
      api->moduleUnload(module);
  }
  if (vendor == GpuVendor::Nvidia)
    api->releaseContext(device);
}

fusert_status GpuDevice::allocate(size_t bytes, void **memory) {
  Current current(*this);
  FUSERT_TRY(check(current.error(), "making the device current"));
  GpuApi::Pointer p = 0;
  FUSERT_TRY(check(api->allocate(&p, bytes), "allocating device memory"));
  *memory = reinterpret_cast<void *>(p);
  return FUSERT_OK;
}

void GpuDevice::release(void *memory) {
  Current current(*this);
  api->release(reinterpret_cast<GpuApi::Pointer>(memory));
}

bool GpuDevice::isDevicePointer(const void *p) const {
  Current current(*this);
  GpuApi::Pointer base = 0;
  size_t bytes = 0;
  return current.error() == 0 &&
         api->addressRange(&base, &bytes, reinterpret_cast<GpuApi::Pointer>(p)) == 0;
}

class GpuQueue final : public Queue {
public:
  explicit GpuQueue(const GpuDevice &device) : device(device), api(*device.api) {}
  ~GpuQueue() override {
    if (!own && gridWords == 0)
      return;
    Current current(device);
    if (own)
      api.streamDestroy(stream);
    if (gridWords != 0)
      api.release(gridWords);
  }
  fusert_status init(GpuApi::Handle given) {
    stream = given;
    const bool grids = std::any_of(device.gridEntries.begin(), device.gridEntries.end(),
                                   [](const GpuDevice::GridEntry &e) { return e.resident > 0; });
    if (given && !grids)
      return FUSERT_OK;
    Current current(device);
    FUSERT_TRY(device.check(current.error(), "making the device current"));
    if (grids) {
      const std::vector<uint8_t> zero(FUSEC_GRID_BYTES);
      FUSERT_TRY(device.check(api.allocate(&gridWords, zero.size()), "allocating a barrier"));
      FUSERT_TRY(
          device.check(api.upload(gridWords, zero.data(), zero.size()), "clearing a barrier"));
    }
    if (given)
      return FUSERT_OK;
    constexpr unsigned nonBlocking = 1; // does not wait for the legacy default stream
    FUSERT_TRY(device.check(api.streamCreate(&stream, nonBlocking), "making a stream"));
    own = true;
    return FUSERT_OK;
  }

  fusert_status begin() override {
    if (device.lost)
      return fail(FUSERT_DEVICE_LOST, "the GPU reported an error that it cannot recover from");
    current.emplace(device);
    if (int error = current->error(); error != 0) {
      current.reset();
      return device.check(error, "making the device current");
    }
    return FUSERT_OK;
  }
  fusert_status launch(Launch &l) override;
  fusert_status launchGrid(const Launch &l, const GpuDevice::GridEntry &entry);
  fusert_status copy(void *to, const void *from, size_t bytes, Direction direction) override {
    const auto source = reinterpret_cast<GpuApi::Pointer>(from),
               target = reinterpret_cast<GpuApi::Pointer>(to);
    switch (direction) {
    case Direction::ToDevice:
      return device.check(api.uploadAsync(target, from, bytes, stream), "copying to the device");
    case Direction::ToHost:
      return device.check(api.downloadAsync(to, source, bytes, stream), "copying from the device");
    default:
      return device.check(api.copyAsync(target, source, bytes, stream), "copying on the device");
    }
  }
  fusert_status finish() override {
    Current here(device);
    FUSERT_TRY(device.check(here.error(), "making the device current"));
    return device.check(api.streamWait(stream), "a kernel");
  }
  void end() override { current.reset(); }
  std::string countersJson() override { return "{\"kernels\":[]}"; }

private:
  const GpuDevice &device;
  const GpuApi &api;
  GpuApi::Handle stream = nullptr;
  bool own = false;
  GpuApi::Pointer gridWords = 0;  // of this queue's grids: one of them runs at a time
  std::optional<Current> current; // during a run
  std::vector<void *> parameters;
};

fusert_status GpuQueue::launch(Launch &l) {
  const bundle::Kernel &k = device.program->kernels[l.kernel];
  parameters.clear();
  for (void *&b : l.buffers)
    parameters.push_back(&b);
  for (int64_t &d : l.dims)
    parameters.push_back(&d);
  for (int64_t blocks : l.grids)
    if (blocks > INT32_MAX)
      return fail(FUSERT_INVALID_ARGUMENT,
                  "under these shapes kernel '" + k.symbol + "' has too many blocks");
  if (const GpuDevice::GridEntry &entry = device.gridEntries[l.kernel]; entry.resident > 0)
    return launchGrid(l, entry);
  return forEachPhase(l, [&](int32_t phase) {
    const int error = api.launch(
        device.entries[l.kernel][phase], static_cast<unsigned>(l.grids[phase]), 1, 1,
        static_cast<unsigned>(k.units * k.lanes), 1, 1, 0, stream, parameters.data(), nullptr);
    return error == 0 ? FUSERT_OK
                      : device.check(error, ("launching kernel '" + k.symbol + "'").c_str());
  });
}

/// `parameters` holds buffers and dims.
fusert_status GpuQueue::launchGrid(const Launch &l, const GpuDevice::GridEntry &entry) {
  const bundle::Kernel &k = device.program->kernels[l.kernel];
  const int64_t widest = *std::max_element(l.grids.begin(), l.grids.end());
  if (widest == 0)
    return FUSERT_OK;
  int64_t blocks = std::min(widest, entry.resident);
  parameters.push_back(&blocks);
  parameters.push_back(&gridWords);
  const int error = api.launchCooperative(entry.function, static_cast<unsigned>(blocks), 1, 1,
                                          static_cast<unsigned>(k.units * k.lanes), 1, 1, 0, stream,
                                          parameters.data());
  return error == 0 ? FUSERT_OK
                    : device.check(error, ("launching kernel '" + k.symbol + "'").c_str());
}

fusert_status GpuDevice::createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) {
  if (options.counters)
    return fail(FUSERT_INVALID_ARGUMENT, "a GPU has no counters; use a sim target");
  if (options.simSeed != 0)
    return fail(FUSERT_INVALID_ARGUMENT, "a seed is for sim targets");
  auto q = std::make_unique<GpuQueue>(*this);
  FUSERT_TRY(q->init(options.stream));
  queue = std::move(q);
  return FUSERT_OK;
}

} // namespace

std::unique_ptr<Device> makeCudaDevice(int32_t ordinal) {
  return std::make_unique<GpuDevice>(GpuVendor::Nvidia, ordinal);
}
std::unique_ptr<Device> makeHipDevice(int32_t ordinal) {
  return std::make_unique<GpuDevice>(GpuVendor::Amd, ordinal);
}

} // namespace fusec::rt

#include "Runtime/GpuDevice.h"

#include "Runtime/Error.h"

#include <algorithm>

namespace fusec::rt {

CurrentGpu::CurrentGpu(const GpuDevice &d) : device(d) {
  if (d.vendor == GpuVendor::Nvidia) {
    status = d.api->pushContext(d.context);
    return;
  }
  status = d.api->getDevice(&previous);
  if (status == 0 && previous != d.ordinal)
    status = d.api->setDevice(d.ordinal);
}

CurrentGpu::~CurrentGpu() {
  if (status != 0)
    return;
  GpuApi::Handle popped;
  if (device.vendor == GpuVendor::Nvidia)
    device.api->popContext(&popped);
  else if (previous != device.ordinal)
    device.api->setDevice(previous);
}

fusert_status GpuDevice::check(int error, const char *what) const {
  if (error == 0)
    return FUSERT_OK;
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
  return check(api->driverVersion(&driverVersion), "asking for the driver's version");
}

GpuDevice::~GpuDevice() {
  if (!opened)
    return;
  {
    CurrentGpu current(*this);
    if (weightBase)
      api->release(weightBase);
    if (module)
      api->moduleUnload(module);
  }
  if (vendor == GpuVendor::Nvidia)
    api->releaseContext(device);
}

fusert_status GpuDevice::load(const bundle::Program &p, const bundle::Model &model) {
  program = &p;
  FUSERT_TRY(openDevice());
  CurrentGpu current(*this);
  FUSERT_TRY(check(current.error(), "making the device current"));
  if (!p.images.empty())
    FUSERT_TRY(loadModule());
  return uploadWeights(model);
}

fusert_status GpuDevice::loadModule() {
  int error = 0;
  for (const bundle::Image &image : program->images) {
    if (image.minDriver > driverVersion) {
      neededVersion =
          neededVersion == 0 ? image.minDriver : std::min(neededVersion, image.minDriver);
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
                                        std::to_string(driverVersion) + ", version " +
                                        std::to_string(neededVersion) + " is needed");
  if (!module)
    return fail(FUSERT_UNSUPPORTED, "the program for '" + program->target +
                                        "' does not run on GPU number " + std::to_string(ordinal) +
                                        " (" + gpuErrorText(error) +
                                        "). Compile for this GPU's target");
  for (const bundle::Kernel &k : program->kernels) {
    entries.emplace_back();
    for (size_t phase = 0; phase < k.grids.size(); ++phase) {
      const std::string name = k.symbol + "_p" + std::to_string(phase);
      GpuApi::Handle function = nullptr;
      FUSERT_TRY(check(api->moduleFunction(&function, module, name.c_str()),
                       ("finding kernel '" + name + "'").c_str()));
      FUSERT_TRY(allowShared(function, k, k.dynamicSharedOf(phase)));
      entries.back().push_back(function);
    }
  }
  return findGridEntries();
}

/// Opts a function in to shared memory that its launches give.
fusert_status GpuDevice::allowShared(GpuApi::Handle function, const bundle::Kernel &k,
                                     int64_t bytes) {
  // CUdevice_attribute and CUfunction_attribute of cuda.h
  constexpr int kSharedOptIn = 97, kMostDynamicShared = 8;
  if (bytes == 0 || vendor != GpuVendor::Nvidia) // AMD's take what the device has
    return FUSERT_OK;
  if (mostShared == 0)
    FUSERT_TRY(check(api->deviceAttribute(&mostShared, kSharedOptIn, device),
                     "asking for the shared memory of a block"));
  if (bytes > mostShared)
    return fail(FUSERT_UNSUPPORTED,
                "a block of kernel '" + k.symbol + "'" +
                    (k.onnxNodes.empty() ? "" : " (node '" + k.onnxNodes.front() + "')") +
                    " needs " + std::to_string(bytes) + " bytes of shared memory, GPU number " +
                    std::to_string(ordinal) + " has " + std::to_string(mostShared) +
                    ". Compile for this GPU's target");
  return check(api->setFunctionAttribute(function, kMostDynamicShared, static_cast<int>(bytes)),
               ("asking for the shared memory of kernel '" + k.symbol + "'").c_str());
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
    FUSERT_TRY(allowShared(entry.function, k, k.dynamicSharedOfAll()));
    int ofCore = 0;
    FUSERT_TRY(check(api->residentBlocks(&ofCore, entry.function, k.units * k.lanes,
                                         static_cast<size_t>(k.dynamicSharedOfAll())),
                     ("asking for room for kernel '" + name + "'").c_str()));
    entry.resident = int64_t{ofCore} * cores;
    gridEntries[i] = entry;
  }
  return FUSERT_OK;
}

std::unique_ptr<Device> makeCudaDevice(int32_t ordinal) {
  return std::make_unique<GpuDevice>(GpuVendor::Nvidia, ordinal);
}
std::unique_ptr<Device> makeHipDevice(int32_t ordinal) {
  return std::make_unique<GpuDevice>(GpuVendor::Amd, ordinal);
}

} // namespace fusec::rt

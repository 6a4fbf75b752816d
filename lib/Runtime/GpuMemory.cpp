// Memory of a GPU: weights, what the runtime allocates, and what a caller's pointer leads to.
#include "Runtime/Error.h"
#include "Runtime/GpuDevice.h"
#include "Runtime/Memory.h"

namespace fusec::rt {

fusert_status GpuDevice::uploadWeights(const bundle::Model &model) {
  const std::vector<bundle::Weight> &weights = model.weights;
  std::vector<bool> used(weights.size(),
                         false); // other programs of the bundle may have weights of their own
  for (const bundle::Tensor &t : program->tensors)
    if (t.weight >= 0)
      used[t.weight] = true;
  for (const bundle::Value &v : model.inputs)
    if (v.weight >= 0)
      used[v.weight] = true;
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
  // The queues' streams do not wait for the default one.
  return check(api->streamWait(nullptr), "uploading the weights");
}

fusert_status GpuDevice::allocate(size_t bytes, void **memory) {
  CurrentGpu current(*this);
  FUSERT_TRY(check(current.error(), "making the device current"));
  GpuApi::Pointer p = 0;
  FUSERT_TRY(check(api->allocate(&p, bytes), "allocating device memory"));
  *memory = reinterpret_cast<void *>(p);
  return FUSERT_OK;
}

void GpuDevice::release(void *memory) {
  CurrentGpu current(*this);
  api->release(reinterpret_cast<GpuApi::Pointer>(memory));
}

/// Memory of the device with this number, which kernels are to use as it is.
fusert_status GpuDevice::onDevice(int which, const std::string &what) const {
  if (which == ordinal)
    return FUSERT_OK;
  return fail(FUSERT_INVALID_ARGUMENT, what + " is memory of GPU number " + std::to_string(which) +
                                           "; the model is loaded on GPU number " +
                                           std::to_string(ordinal));
}

fusert_status GpuDevice::findNvidiaMemory(const void *p, const std::string &what,
                                          bool &ofDevice) const {
  // CUpointer_attribute and CUmemorytype of cuda.h
  constexpr int kContext = 1, kType = 2, kManaged = 8, kOrdinal = 9;
  constexpr unsigned kDeviceMemory = 2;
  constexpr int kInvalidValue = 1, kInvalidContext = 201;
  GpuApi::Handle owner = nullptr;
  unsigned type = 0, managed = 0;
  int which = 0;
  int attributes[] = {kContext, kType, kManaged, kOrdinal};
  void *values[] = {&owner, &type, &managed, &which};
  const int error = api->pointerValues(4, attributes, values, reinterpret_cast<GpuApi::Pointer>(p));
  if (error == kInvalidValue || error == kInvalidContext)
    return FUSERT_OK; // not the driver's
  FUSERT_TRY(check(error, "asking what memory a pointer leads to"));
  ofDevice = managed != 0 || type == kDeviceMemory;
  if (!ofDevice || managed != 0)
    return FUSERT_OK;
  FUSERT_TRY(onDevice(which, what));
  if (owner && owner != context) // null for memory from pools, which belongs to no context
    return fail(FUSERT_INVALID_ARGUMENT,
                what + " is memory of another context than the primary one of GPU number " +
                    std::to_string(ordinal) + ", in which the model is loaded");
  return FUSERT_OK;
}

fusert_status GpuDevice::findAmdMemory(const void *p, const std::string &what,
                                       bool &ofDevice) const {
  // hipPointerAttribute_t of hip_runtime_api.h; hipMemoryType has other numbers since HIP 6.
  struct {
    int type, device;
    void *devicePointer, *hostPointer;
    int managed;
    unsigned flags;
  } found{};
  constexpr int kHip6 = 60000000, kInvalidValue = 1;
  const int kDeviceMemory = driverVersion >= kHip6 ? 2 : 1;
  const int kManaged = driverVersion >= kHip6 ? 3 : 4;
  const int error = api->pointerAttributes(&found, p);
  if (error == kInvalidValue)
    return FUSERT_OK; // not the driver's
  FUSERT_TRY(check(error, "asking what memory a pointer leads to"));
  const bool managed = found.managed != 0 || found.type == kManaged;
  ofDevice = managed || found.type == kDeviceMemory;
  return ofDevice && !managed ? onDevice(found.device, what) : FUSERT_OK;
}

fusert_status GpuDevice::findMemory(const void *p, const std::string &what, bool &ofDevice) const {
  ofDevice = false;
  CurrentGpu current(*this);
  FUSERT_TRY(check(current.error(), "making the device current"));
  return vendor == GpuVendor::Nvidia ? findNvidiaMemory(p, what, ofDevice)
                                     : findAmdMemory(p, what, ofDevice);
}

} // namespace fusec::rt

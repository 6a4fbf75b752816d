#include "Runtime/GpuApi.h"

#include "Runtime/Error.h"

#include <cstring>
#include <dlfcn.h>
#include <mutex>

namespace fusec::rt {

namespace {

struct Entry {
  size_t offset; // of the member of GpuApi
  const char *nvidia, *amd;
};

// "_v2": the forms with 64-bit sizes and pointers, which are what cuda.h's plain names stand for.
constexpr Entry entries[] = {
    {offsetof(GpuApi, init), "cuInit", "hipInit"},
    {offsetof(GpuApi, driverVersion), "cuDriverGetVersion", "hipDriverGetVersion"},
    {offsetof(GpuApi, deviceCount), "cuDeviceGetCount", "hipGetDeviceCount"},
    {offsetof(GpuApi, deviceGet), "cuDeviceGet", "hipDeviceGet"},
    {offsetof(GpuApi, deviceName), "cuDeviceGetName", nullptr},
    {offsetof(GpuApi, retainContext), "cuDevicePrimaryCtxRetain", nullptr},
    {offsetof(GpuApi, releaseContext), "cuDevicePrimaryCtxRelease_v2", nullptr},
    {offsetof(GpuApi, pushContext), "cuCtxPushCurrent_v2", nullptr},
    {offsetof(GpuApi, popContext), "cuCtxPopCurrent_v2", nullptr},
    {offsetof(GpuApi, getDevice), nullptr, "hipGetDevice"},
    {offsetof(GpuApi, setDevice), nullptr, "hipSetDevice"},
    {offsetof(GpuApi, moduleLoad), "cuModuleLoadData", "hipModuleLoadData"},
    {offsetof(GpuApi, moduleUnload), "cuModuleUnload", "hipModuleUnload"},
    {offsetof(GpuApi, moduleFunction), "cuModuleGetFunction", "hipModuleGetFunction"},
    {offsetof(GpuApi, allocate), "cuMemAlloc_v2", "hipMalloc"},
    {offsetof(GpuApi, release), "cuMemFree_v2", "hipFree"},
    {offsetof(GpuApi, upload), "cuMemcpyHtoD_v2", "hipMemcpyHtoD"},
    {offsetof(GpuApi, uploadAsync), "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"},
    {offsetof(GpuApi, downloadAsync), "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"},
    {offsetof(GpuApi, copyAsync), "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"},
    {offsetof(GpuApi, streamCreate), "cuStreamCreate", "hipStreamCreateWithFlags"},
    {offsetof(GpuApi, streamDestroy), "cuStreamDestroy_v2", "hipStreamDestroy"},
    {offsetof(GpuApi, streamWait), "cuStreamSynchronize", "hipStreamSynchronize"},
    {offsetof(GpuApi, launch), "cuLaunchKernel", "hipModuleLaunchKernel"},
    {offsetof(GpuApi, launchCooperative), "cuLaunchCooperativeKernel", nullptr},
    {offsetof(GpuApi, residentBlocks), "cuOccupancyMaxActiveBlocksPerMultiprocessor", nullptr},
    {offsetof(GpuApi, deviceAttribute), "cuDeviceGetAttribute", nullptr},
    {offsetof(GpuApi, addressRange), "cuMemGetAddressRange_v2", "hipMemGetAddressRange"},
};

fusert_status open(GpuVendor vendor, GpuApi &api) {
  const bool nvidia = vendor == GpuVendor::Nvidia;
  // The plain name of HIP's library is there with development packages only.
  static const char *const nvidiaNames[] = {"libcuda.so.1", nullptr};
  static const char *const amdNames[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                         "libamdhip64.so.5", nullptr};
  void *library = nullptr;
  for (const char *const *name = nvidia ? nvidiaNames : amdNames; *name && !library; ++name)
    library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(FUSERT_UNAVAILABLE, nvidia ? "no NVIDIA driver: libcuda.so.1 cannot be opened"
                                           : "no AMD driver: libamdhip64.so cannot be opened");
  std::memset(static_cast<void *>(&api), 0, sizeof api);
  for (const Entry &e : entries) {
    const char *name = nvidia ? e.nvidia : e.amd;
    if (!name)
      continue;
    void *function = dlsym(library, name);
    if (!function) {
      dlclose(library);
      return fail(FUSERT_UNAVAILABLE, std::string("the GPU driver is too old: it has no ") + name);
    }
    std::memcpy(reinterpret_cast<char *>(&api) + e.offset, &function, sizeof function);
  }
  api.vendor = vendor;
  return FUSERT_OK; // never closed: drivers keep threads and exit handlers
}

} // namespace

fusert_status openGpuApi(GpuVendor vendor, const GpuApi **api) {
  static std::mutex mutex;
  static GpuApi apis[2];
  static bool opened[2];
  const int i = static_cast<int>(vendor);
  std::lock_guard lock(mutex);
  if (!opened[i]) {
    FUSERT_TRY(open(vendor, apis[i]));
    opened[i] = true;
  }
  *api = &apis[i];
  return FUSERT_OK;
}

fusert_status statusOfGpuError(int error) {
  switch (error) {
  case 0: return FUSERT_OK;
  case 2: // out of memory
    return FUSERT_NO_MEMORY;
  case 3:   // not initialised
  case 34:  // stub library
  case 35:  // insufficient driver
  case 100: // no device
  case 101: // invalid device
  case 802: // system not ready
  case 803: // driver mismatch
    return FUSERT_UNAVAILABLE;
  default:
    return isStickyGpuError(error)  ? FUSERT_DEVICE_LOST
           : isImageGpuError(error) ? FUSERT_UNSUPPORTED
                                    : FUSERT_DEVICE_ERROR;
  }
}

fusert_status checkGpu(int error, const std::string &what) {
  if (error == 0)
    return FUSERT_OK;
  return fail(statusOfGpuError(error), what + " failed: driver error " + std::to_string(error));
}

bool isStickyGpuError(int error) {
  switch (error) {
  case 46:  // device unavailable
  case 214: // uncorrectable ECC error
  case 220: // uncorrectable NVLink error
  case 700: // illegal address
  case 702: // launch timeout
  case 709: // context destroyed
  case 710: // device-side assert
  case 714: // hardware stack error
  case 715: // illegal instruction
  case 716: // misaligned address
  case 717: // invalid address space
  case 718: // invalid program counter
  case 719: // launch failed
  case 999: // unknown
    return true;
  default: return false;
  }
}

bool isImageGpuError(int error) {
  return error == 200 /* invalid image */ || error == 209 /* no binary for the device */ ||
         error == 218 /* bad PTX */ || error == 222 /* PTX too new */ ||
         error == 221 /* no JIT compiler */ || error == 301 /* file not found */;
}

} // namespace fusec::rt

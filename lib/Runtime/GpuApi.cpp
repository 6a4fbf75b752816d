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
    {offsetof(GpuApi, fillAsync), "cuMemsetD8Async", "hipMemsetD8Async"},
    {offsetof(GpuApi, streamCreate), "cuStreamCreate", "hipStreamCreateWithFlags"},
    {offsetof(GpuApi, streamDestroy), "cuStreamDestroy_v2", "hipStreamDestroy"},
    {offsetof(GpuApi, streamWait), "cuStreamSynchronize", "hipStreamSynchronize"},
    {offsetof(GpuApi, streamWaitEvent), "cuStreamWaitEvent", "hipStreamWaitEvent"},
    {offsetof(GpuApi, isCapturing), "cuStreamIsCapturing", "hipStreamIsCapturing"},
    {offsetof(GpuApi, eventCreate), "cuEventCreate", "hipEventCreateWithFlags"},
    {offsetof(GpuApi, eventDestroy), "cuEventDestroy_v2", "hipEventDestroy"},
    {offsetof(GpuApi, eventRecord), "cuEventRecord", "hipEventRecord"},
    {offsetof(GpuApi, eventWait), "cuEventSynchronize", "hipEventSynchronize"},
    {offsetof(GpuApi, launch), "cuLaunchKernel", "hipModuleLaunchKernel"},
    {offsetof(GpuApi, setFunctionAttribute), "cuFuncSetAttribute", nullptr},
    {offsetof(GpuApi, launchCooperative), "cuLaunchCooperativeKernel", nullptr},
    {offsetof(GpuApi, residentBlocks), "cuOccupancyMaxActiveBlocksPerMultiprocessor", nullptr},
    {offsetof(GpuApi, deviceAttribute), "cuDeviceGetAttribute", nullptr},
    {offsetof(GpuApi, pointerValues), "cuPointerGetAttributes", nullptr},
    {offsetof(GpuApi, pointerAttributes), nullptr, "hipPointerGetAttributes"},
};

fusert_status open(GpuVendor vendor, GpuApi &api) {
  const bool nvidia = vendor == GpuVendor::Nvidia;
  void *library = openFirst(driverLibraryNames(vendor));
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

const char *const *driverLibraryNames(GpuVendor vendor) {
  // The plain name of HIP's library is there with development packages only, and says nothing of its age.
  static const char *const nvidia[] = {"libcuda.so.1", nullptr};
  static const char *const amd[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                    "libamdhip64.so", nullptr};
  return vendor == GpuVendor::Nvidia ? nvidia : amd;
}

void *openFirst(const char *const *names) {
  for (const int loaded : {RTLD_NOLOAD, 0})
    for (const char *const *name = names; *name; ++name)
      if (void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | loaded))
        return library;
  return nullptr;
}

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

} // namespace fusec::rt

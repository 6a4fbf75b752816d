#pragma once
#include "fusec/runtime.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fusec::rt {

enum class GpuVendor { Nvidia, Amd };

/// The driver functions that the runtime uses, from libcuda.so.1 or libamdhip64.so. Both have the same shape: status
/// int (0 = success), device pointers of 64 bits, opaque handles. Where the vendors differ, the member of the other
/// one is null. The declarations are ours; test/Unit/Runtime compares them with the vendors' headers where found.
struct GpuApi {
  using Handle = void *;
  using Pointer = uint64_t;

  int (*init)(unsigned flags);
  int (*driverVersion)(int *version);
  int (*deviceCount)(int *count);
  int (*deviceGet)(int *device, int ordinal);
  int (*deviceName)(char *name, int length, int device); // NVIDIA
  int (*retainContext)(Handle *context, int device);     // NVIDIA
  int (*releaseContext)(int device);                     // NVIDIA
  int (*pushContext)(Handle context);                    // NVIDIA
  int (*popContext)(Handle *context);                    // NVIDIA
  int (*getDevice)(int *ordinal);                        // AMD
  int (*setDevice)(int ordinal);                         // AMD
  int (*moduleLoad)(Handle *module, const void *image);
  int (*moduleUnload)(Handle module);
  int (*moduleFunction)(Handle *function, Handle module, const char *name);
  int (*allocate)(Pointer *memory, size_t bytes);
  int (*release)(Pointer memory);
  /// On the default stream. Pageable memory has been read when it returns, but may not have arrived yet.
  int (*upload)(Pointer to, const void *from, size_t bytes);
  int (*uploadAsync)(Pointer to, const void *from, size_t bytes, Handle stream);
  int (*downloadAsync)(void *to, Pointer from, size_t bytes, Handle stream);
  int (*copyAsync)(Pointer to, Pointer from, size_t bytes, Handle stream);
  int (*fillAsync)(Pointer to, unsigned char value, size_t bytes, Handle stream);
  int (*streamCreate)(Handle *stream, unsigned flags);
  int (*streamDestroy)(Handle stream);
  int (*streamWait)(Handle stream);
  int (*streamWaitEvent)(Handle stream, Handle event, unsigned flags);
  int (*isCapturing)(Handle stream, int *status); // 0: not
  int (*eventCreate)(Handle *event, unsigned flags);
  int (*eventDestroy)(Handle event);
  int (*eventRecord)(Handle event, Handle stream);
  int (*eventWait)(Handle event);
  int (*launch)(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                unsigned blockY, unsigned blockZ, unsigned sharedBytes, Handle stream,
                void **parameters, void **extra);
  int (*setFunctionAttribute)(Handle function, int attribute, int value); // NVIDIA
  int (*launchCooperative)(Handle function, unsigned gridX, unsigned gridY, unsigned gridZ,
                           unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                           Handle stream, void **parameters); // NVIDIA: all blocks at once or none
  int (*residentBlocks)(int *blocks, Handle function, int blockThreads,
                        size_t dynamicSharedBytes);              // NVIDIA: of a core
  int (*deviceAttribute)(int *value, int attribute, int device); // NVIDIA
  /// NVIDIA: values of `count` attributes (CUpointer_attribute); zeros for memory that the driver does not know.
  int (*pointerValues)(unsigned count, int *attributes, void **values, Pointer pointer);
  int (*pointerAttributes)(void *attributes, const void *pointer); // AMD: a hipPointerAttribute_t
  GpuVendor vendor;
};

/// Names of the vendor's driver library, newest first; a null ends them.
const char *const *driverLibraryNames(GpuVendor vendor);
/// The first of these libraries that the process has loaded already, or else that can be opened; or null. A second copy
/// of a driver's library does not know what was made with the first.
void *openFirst(const char *const *names);

/// Opens the vendor's driver library once. FUSERT_UNAVAILABLE when it is missing or lacks a function.
fusert_status openGpuApi(GpuVendor vendor, const GpuApi **api);

/// What a driver status means for the caller. The numbers are those of CUresult; hipError_t has the same ones.
fusert_status statusOfGpuError(int error);
/// The status of the driver's call `what`; sets the last error if it failed.
fusert_status checkGpu(int error, const std::string &what);
/// "driver error 700 (illegal address)".
std::string gpuErrorText(int error);
/// True for errors after which the device's context is of no more use.
bool isStickyGpuError(int error);
/// True when the image is not for this device or too new for this driver: another image may do.
bool isImageGpuError(int error);
/// True when blocks may not wait for each other here: the device is shared or split up, or has less room than it says.
bool isCooperativeRefusal(int error);

} // namespace fusec::rt

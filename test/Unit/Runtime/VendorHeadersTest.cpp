// Our declarations of the driver functions against the vendors' headers, where the build finds them.
#include "Runtime/GpuApi.h"

#include <catch2/catch_test_macros.hpp>
#include <type_traits>

#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAVE_CUDA_H 1
#endif
#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#define HAVE_HIP_H 1
#endif

namespace {

using fusec::rt::GpuApi;

/// Passed the same way: both pointers or integers (also enums) of one size.
template <typename A, typename B>
constexpr bool sameArgument =
    sizeof(A) == sizeof(B) && !std::is_class_v<A> && !std::is_floating_point_v<A> &&
    !std::is_class_v<B> && !std::is_floating_point_v<B>;
template <typename Ours, typename Theirs> struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sameArgument<R, S> && (sameArgument<A, B> && ...)> {};

#define SAME(member, theirs)                                                                       \
  static_assert(SameShape<decltype(GpuApi::member), decltype(&theirs)>::value, #theirs)

#if HAVE_CUDA_H
SAME(init, cuInit);
SAME(driverVersion, cuDriverGetVersion);
SAME(deviceCount, cuDeviceGetCount);
SAME(deviceGet, cuDeviceGet);
SAME(retainContext, cuDevicePrimaryCtxRetain);
SAME(releaseContext, cuDevicePrimaryCtxRelease);
SAME(pushContext, cuCtxPushCurrent);
SAME(popContext, cuCtxPopCurrent);
SAME(moduleLoad, cuModuleLoadData);
SAME(moduleUnload, cuModuleUnload);
SAME(moduleFunction, cuModuleGetFunction);
SAME(allocate, cuMemAlloc);
SAME(release, cuMemFree);
SAME(upload, cuMemcpyHtoD);
SAME(uploadAsync, cuMemcpyHtoDAsync);
SAME(downloadAsync, cuMemcpyDtoHAsync);
SAME(copyAsync, cuMemcpyDtoDAsync);
SAME(streamCreate, cuStreamCreate);
SAME(streamDestroy, cuStreamDestroy);
SAME(streamWait, cuStreamSynchronize);
SAME(launch, cuLaunchKernel);
SAME(launchCooperative, cuLaunchCooperativeKernel);
SAME(setFunctionAttribute, cuFuncSetAttribute);
static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8);
SAME(residentBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor);
SAME(deviceAttribute, cuDeviceGetAttribute);
SAME(deviceName, cuDeviceGetName);
static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == 16 &&
              CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH == 95 &&
              CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE == 38 &&
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN == 97 &&
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR == 81 &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75 &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);
SAME(fillAsync, cuMemsetD8Async);
SAME(streamWaitEvent, cuStreamWaitEvent);
SAME(isCapturing, cuStreamIsCapturing);
SAME(eventCreate, cuEventCreate);
SAME(eventDestroy, cuEventDestroy);
SAME(eventRecord, cuEventRecord);
SAME(eventWait, cuEventSynchronize);
SAME(pointerValues, cuPointerGetAttributes);
static_assert(CU_POINTER_ATTRIBUTE_CONTEXT == 1 && CU_POINTER_ATTRIBUTE_MEMORY_TYPE == 2 &&
              CU_POINTER_ATTRIBUTE_IS_MANAGED == 8 && CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9 &&
              CU_MEMORYTYPE_DEVICE == 2);
static_assert(CU_STREAM_NON_BLOCKING == 1 && CU_EVENT_DISABLE_TIMING == 2 &&
              CU_STREAM_CAPTURE_STATUS_NONE == 0);
#endif

#if HAVE_HIP_H
SAME(init, hipInit);
SAME(driverVersion, hipDriverGetVersion);
SAME(deviceCount, hipGetDeviceCount);
SAME(deviceGet, hipDeviceGet);
SAME(getDevice, hipGetDevice);
SAME(setDevice, hipSetDevice);
SAME(moduleLoad, hipModuleLoadData);
SAME(moduleUnload, hipModuleUnload);
SAME(moduleFunction, hipModuleGetFunction);
static_assert(SameShape<decltype(GpuApi::allocate),
                        hipError_t (*)(void **, size_t)>::value); // overloaded in C++
SAME(release, hipFree);
SAME(upload, hipMemcpyHtoD);
SAME(uploadAsync, hipMemcpyHtoDAsync);
SAME(downloadAsync, hipMemcpyDtoHAsync);
SAME(copyAsync, hipMemcpyDtoDAsync);
SAME(streamCreate, hipStreamCreateWithFlags);
SAME(streamDestroy, hipStreamDestroy);
SAME(streamWait, hipStreamSynchronize);
SAME(launch, hipModuleLaunchKernel);
SAME(fillAsync, hipMemsetD8Async);
SAME(streamWaitEvent, hipStreamWaitEvent);
SAME(isCapturing, hipStreamIsCapturing);
SAME(eventCreate, hipEventCreateWithFlags);
SAME(eventDestroy, hipEventDestroy);
SAME(eventRecord, hipEventRecord);
SAME(eventWait, hipEventSynchronize);
SAME(pointerAttributes, hipPointerGetAttributes);
static_assert(hipStreamNonBlocking == 1 && hipEventDisableTiming == 2);
#if HIP_VERSION >= 60000000
static_assert(hipMemoryTypeDevice == 2 && hipMemoryTypeManaged == 3);
#else
static_assert(hipMemoryTypeDevice == 1);
#endif
#endif

} // namespace

TEST_CASE("error numbers are the vendors'") {
  using namespace fusec::rt;
#if HAVE_CUDA_H
  CHECK(statusOfGpuError(CUDA_ERROR_OUT_OF_MEMORY) == FUSERT_NO_MEMORY);
  CHECK(statusOfGpuError(CUDA_ERROR_NO_DEVICE) == FUSERT_UNAVAILABLE);
  CHECK(isImageGpuError(CUDA_ERROR_NO_BINARY_FOR_GPU));
  CHECK(isImageGpuError(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
  CHECK(isStickyGpuError(CUDA_ERROR_ILLEGAL_ADDRESS));
  CHECK(isStickyGpuError(CUDA_ERROR_LAUNCH_FAILED));
  CHECK(isStickyGpuError(CUDA_ERROR_LAUNCH_TIMEOUT));
#else
  WARN("cuda.h not found: the NVIDIA declarations are not compared");
#endif
#if HAVE_HIP_H
  CHECK(statusOfGpuError(hipErrorOutOfMemory) == FUSERT_NO_MEMORY);
  CHECK(statusOfGpuError(hipErrorNoDevice) == FUSERT_UNAVAILABLE);
  CHECK(isImageGpuError(hipErrorNoBinaryForGpu));
  CHECK(isStickyGpuError(hipErrorIllegalAddress));
  CHECK(isStickyGpuError(hipErrorLaunchFailure));
#else
  WARN("hip/hip_runtime_api.h not found: the AMD declarations are not compared");
#endif
  CHECK(statusOfGpuError(0) == FUSERT_OK);
}

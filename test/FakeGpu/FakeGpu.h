#pragma once
#include <stddef.h>
#include <stdint.h>

/* A stand-in for libcuda.so.1 (FAKE_NVIDIA) or libamdhip64.so with host memory behind device pointers. It records
 * every call, checks its arguments and what is current, and can be told to fail. Work runs as late as the driver's
 * rules allow: when a stream or an event is waited for. That holds for copies of pageable memory on the default stream
 * too, which have only been read when their call returns; streams that do not wait for the default stream run ahead of
 * them, and whoever then touches their memory, or that of another device, misuses the driver.
 * An image is the text "FAKE:" and the path of a shared library; function NAME of a module is the function NAME of that
 * library, which also exports int NAME_params and, where launches give it shared memory, int NAME_shared. The PTX that
 * measures a device has its twins in FakeKernels.c. */
#ifdef __cplusplus
extern "C" {
#endif

typedef void (*FakeKernel)(void **parameters, unsigned grid, unsigned block);

typedef struct {
  int calls;   /* since reset */
  int misuses; /* calls with wrong arguments or at the wrong time */
  int contexts, modules, streams, events, allocations; /* not released yet */
  int pushed; /* contexts that the calling thread has left current */
  char firstMisuse[200];
  char log[8192]; /* names of the calls, one a line, as far as there is room */
} FakeGpuState;

void fakeGpuReset(void);
/* The n-th call from now (1, 2, ...) returns `error` and does nothing; 0 switches it off. */
void fakeGpuFailAt(int n, int error);
void fakeGpuSetDevices(int count); /* at most 2 */
void fakeGpuSetVersion(int version);
/* Blocks of any kernel that a core holds at once (NVIDIA); 0: no cooperative launches. There are two cores. */
void fakeGpuSetResident(int blocks);
/* Bytes of shared memory that a launch may give a block (NVIDIA); at first 227 KiB. */
void fakeGpuSetShared(int bytes);
/* Each cooperative launch returns `error`; 0: none does. */
void fakeGpuRefuseCooperative(int error);
/* CU_STREAM_CAPTURE_STATUS of a stream. While it is not 0, the stream takes no work; waiting and allocating fail. */
void fakeGpuSetCapture(void *stream, int status);
void fakeGpuGetState(FakeGpuState *state);

/* Memory that someone else has made. */
enum FakeMemory {
  FAKE_DEVICE = 0,
  FAKE_OTHER_CONTEXT = 1, /* of the device, made in a context that is not its primary one */
  FAKE_PINNED = 2,        /* host memory that the device can reach */
  FAKE_MANAGED = 3
};
void *fakeGpuAllocate(enum FakeMemory kind, int device, size_t bytes);
void fakeGpuRelease(void *memory);

#ifdef __cplusplus
}
#endif

#pragma once

/* A stand-in for libcuda.so.1 (FAKE_NVIDIA) or libamdhip64.so with host memory behind device pointers. It records
 * every call, checks its arguments and what is current, runs work only when a stream is waited for, and can be told
 * to fail. An image is the text "FAKE:" and the path of a shared library; function NAME of a module is the function
 * NAME of that library, which also exports int NAME_params.
 * The PTX that measures a device has its twins in FakeKernels.c. */
#ifdef __cplusplus
extern "C" {
#endif

typedef void (*FakeKernel)(void **parameters, unsigned grid, unsigned block);

typedef struct {
  int calls;                                   /* since reset */
  int misuses;                                 /* calls with wrong arguments or at the wrong time */
  int contexts, modules, streams, allocations; /* not released yet */
  char firstMisuse[200];
  char log[8192]; /* names of the calls, one a line, as far as there is room */
} FakeGpuState;

void fakeGpuReset(void);
/* The n-th call from now (1, 2, ...) returns `error` and does nothing; 0 switches it off. */
void fakeGpuFailAt(int n, int error);
void fakeGpuSetDevices(int count);
void fakeGpuSetVersion(int version);
/* Blocks of any kernel that a core holds at once (NVIDIA); 0: no cooperative launches. There are two cores. */
void fakeGpuSetResident(int blocks);
void fakeGpuGetState(FakeGpuState *state);

#ifdef __cplusplus
}
#endif

/* Kernels by hand for tests of bundle and runtime: linked as a CPU image. Dims: the first one is the number of
 * elements. */
#include "fusec/bundle_format.h"

#define EXPORT __attribute__((visibility("default")))
enum { kBlock = 64 }; /* elements a block */

static int32_t sumOf(const fusec_kernel_args *args, int64_t block) {
  const float *a = args->buffers[0], *b = args->buffers[1];
  float *out = args->buffers[2];
  int64_t end = (block + 1) * kBlock;
  if (end > args->dims[0])
    end = args->dims[0];
  for (int64_t i = block * kBlock; i < end; ++i)
    out[i] = a[i] + b[i];
  return FUSEC_KERNEL_OK;
}

/* out = a + b */
EXPORT int32_t add(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  (void)phase;
  return sumOf(args, block);
}

/* The same under another name, for another number of elements. */
EXPORT int32_t add_few(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  (void)phase;
  return sumOf(args, block);
}

/* Phase 0: partial[block] = sum of a block of x, by way of the scratch memory; phase 1: out = sum of partial. */
EXPORT int32_t sum(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  const float *x = args->buffers[0];
  float *partial = args->buffers[1], *out = args->buffers[2];
  const int64_t n = args->dims[0], blocks = (n + kBlock - 1) / kBlock;
  float *scratch = args->scratch;
  if (phase == 0) {
    int64_t first = block * kBlock, end = first + kBlock > n ? n : first + kBlock;
    for (int64_t i = first; i < end; ++i)
      scratch[i - first] = x[i];
    float total = 0;
    for (int64_t i = first; i < end; ++i)
      total += scratch[i - first];
    partial[block] = total;
    return FUSEC_KERNEL_OK;
  }
  float total = 0;
  for (int64_t i = 0; i < blocks; ++i)
    total += partial[i];
  out[0] = total;
  return FUSEC_KERNEL_OK;
}

/* Rounds over a state of two halves; dims: n, the number of rounds, the round. Phase 0: the state is x; phase 1, in
 * rounds: an element and its neighbours in one half make that of the other; phase 2: out is the half written last. */
EXPORT int32_t spread(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  const float *x = args->buffers[0];
  float *state = args->buffers[1], *out = args->buffers[2];
  const int64_t n = args->dims[0], steps = args->dims[1], round = args->dims[2];
  const int64_t end = (block + 1) * kBlock > n ? n : (block + 1) * kBlock;
  for (int64_t i = block * kBlock; i < end; ++i) {
    const float *now = state + round % 2 * n;
    float *next = state + (round + 1) % 2 * n;
    if (phase == 0)
      state[i] = x[i];
    else if (phase == 1)
      next[i] = now[i] * 0.5f + now[(i + n - 1) % n] * 0.25f + now[(i + 1) % n] * 0.125f;
    else
      out[i] = state[steps % 2 * n + i];
  }
  return FUSEC_KERNEL_OK;
}

/* out = x > limit, scalars */
EXPORT int32_t greater(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  (void)phase, (void)block;
  *(uint8_t *)args->buffers[2] =
      *(const float *)args->buffers[0] > *(const float *)args->buffers[1];
  return FUSEC_KERNEL_OK;
}

/* out = table[index], refusing an index outside the table */
EXPORT int32_t gather(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  const float *table = args->buffers[0];
  const int64_t index = *(const int64_t *)args->buffers[1];
  (void)phase, (void)block;
  if (index < 0 || index >= args->dims[0])
    return FUSEC_KERNEL_INDEX_OUT_OF_RANGE;
  *(float *)args->buffers[2] = table[index];
  return FUSEC_KERNEL_OK;
}

/* out = 1/3 rounded as the environment says */
EXPORT int32_t third(const fusec_kernel_args *args, int32_t phase, int64_t block) {
  volatile float one = 1, three = 3;
  (void)phase, (void)block;
  *(float *)args->buffers[0] = one / three;
  return FUSEC_KERNEL_OK;
}

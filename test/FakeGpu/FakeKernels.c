/* Host twins of GPU kernels, for the fake driver. */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* out = a + b; a thread an element */
EXPORT int add_p0_params = 4;
EXPORT void add_p0(void **p, unsigned grid, unsigned block) {
  const float *a = *(const float **)p[0], *b = *(const float **)p[1];
  float *out = *(float **)p[2];
  const int64_t n = *(const int64_t *)p[3];
  for (int64_t i = 0; i < n && i < (int64_t)grid * block; ++i)
    out[i] = a[i] + b[i];
}

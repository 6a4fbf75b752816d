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

/* A second phase that has nothing to do, and both as one: blocks of a grid that are all there, and its barrier's word,
 * which is 0 before the first launch. */
EXPORT int add_p1_params = 4;
EXPORT void add_p1(void **p, unsigned grid, unsigned block) { (void)p, (void)grid, (void)block; }
EXPORT int add_grid_params = 6;
EXPORT void add_grid(void **p, unsigned grid, unsigned block) {
  const int64_t blocks = *(const int64_t *)p[4];
  uint32_t *word = *(uint32_t **)p[5];
  if (blocks != grid || (*word & 0x7fffffffu) != 0)
    return; /* leaves the output as it was */
  *word ^= 0x80000000u;
  add_p0(p, 1u << 20, block);
}

/* The same where launches give blocks shared memory. */
EXPORT int wide_p0_params = 4, wide_p0_shared = 200000;
EXPORT void wide_p0(void **p, unsigned grid, unsigned block) { add_p0(p, grid, block); }
EXPORT int wide_p1_params = 4, wide_p1_shared = 0;
EXPORT void wide_p1(void **p, unsigned grid, unsigned block) { add_p1(p, grid, block); }
EXPORT int wide_grid_params = 6, wide_grid_shared = 200064;
EXPORT void wide_grid(void **p, unsigned grid, unsigned block) { add_grid(p, grid, block); }

/* Kernels that measure a device: as many turns as they are asked for, in which something happens. */
static void turns(uint64_t count) {
  for (volatile uint64_t i = 0; i < count; ++i)
    ;
}
EXPORT int empty_params = 0;
EXPORT void empty(void **p, unsigned grid, unsigned block) { (void)p, (void)grid, (void)block; }
EXPORT int block_barriers_params = 1;
EXPORT void block_barriers(void **p, unsigned grid, unsigned block) {
  (void)grid, (void)block;
  turns(*(const uint64_t *)p[0]);
}
EXPORT int grid_barriers_params = 3;
EXPORT void grid_barriers(void **p, unsigned grid, unsigned block) {
  const uint64_t rounds = *(const uint64_t *)p[0], blocks = *(const uint64_t *)p[1];
  uint64_t *word = *(uint64_t **)p[2];
  (void)block;
  if (blocks != grid || *word != 0)
    return; /* no barrier would ever be passed */
  turns(rounds * blocks);
  *word = rounds * blocks;
}
EXPORT int read_shared_params = 2;
EXPORT void read_shared(void **p, unsigned grid, unsigned block) {
  (void)grid, (void)block;
  turns(*(const uint64_t *)p[0] * 64);
}
EXPORT int sweep_global_params = 5;
EXPORT void sweep_global(void **p, unsigned grid, unsigned block) {
  const uint64_t rounds = *(const uint64_t *)p[0], bytes = *(const uint64_t *)p[2];
  const uint64_t copies = *(const uint64_t *)p[4], readsOfTurn = copies ? 2 : 4;
  const volatile uint8_t *from = *(const uint8_t **)p[1];
  volatile uint8_t *to = *(uint8_t **)p[3];
  if (bytes % ((uint64_t)grid * block * 16 * readsOfTurn) != 0)
    return; /* the last turn would leave the memory */
  for (uint64_t r = 0; r < rounds; ++r)
    for (uint64_t i = 0; i < bytes; i += copies ? 1 : 64)
      if (copies)
        to[i] = from[i];
      else
        (void)from[i];
}

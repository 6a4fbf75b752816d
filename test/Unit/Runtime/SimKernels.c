/* Kernels by hand for the sim device: good ones, and one for each rule that can be broken. Every kernel has one
 * phase, or two and an entry for both; dims[0] is the number of elements. */
#include "fusec/bundle_format.h"

#define ENTRY(name) __attribute__((visibility("default"))) void name(fusec_sim_thread *t)
#define KERNEL(name) ENTRY(name##_p0)

enum { kLanes = 32 };

static float loadAgain(fusec_sim_thread *t, int32_t param, int64_t i, int64_t iteration,
                       int32_t site) {
  const float *p = (const float *)t->buffers[param] + i;
  t->hooks->access(t, p, 4, FUSEC_SIM_READ, param, iteration, site);
  return *p;
}
static float load(fusec_sim_thread *t, int32_t param, int64_t i, int32_t site) {
  return loadAgain(t, param, i, 0, site);
}
static void store(fusec_sim_thread *t, int32_t param, int64_t i, float v, int32_t site) {
  float *p = (float *)t->buffers[param] + i;
  t->hooks->access(t, p, 4, FUSEC_SIM_WRITE, param, 0, site);
  *p = v;
}
static float loadShared(fusec_sim_thread *t, int64_t i, int32_t site) {
  const float *p = (const float *)t->shared + i;
  t->hooks->access(t, p, 4, FUSEC_SIM_READ, -1, 0, site);
  return *p;
}
static void storeShared(fusec_sim_thread *t, int64_t i, float v, int32_t site) {
  float *p = (float *)t->shared + i;
  t->hooks->access(t, p, 4, FUSEC_SIM_WRITE, -1, 0, site);
  *p = v;
}

/* out = x + y, 64 threads a block */
KERNEL(good_add) {
  const int64_t i = t->block * 64 + t->thread;
  if (i < t->dims[0])
    store(t, 2, i, load(t, 0, i, 0) + load(t, 1, i, 1), 2);
}

/* out = x, total = x of thread 0 */
KERNEL(good_pair) {
  const int64_t i = t->block * 64 + t->thread;
  if (i < t->dims[0])
    store(t, 1, i, load(t, 0, i, 0), 1);
  if (i == 0)
    store(t, 2, 0, load(t, 0, 0, 2), 3);
}

/* out[i] = x[63-i] within each block of 64, by way of shared memory and a barrier */
KERNEL(good_reverse) {
  const int64_t base = t->block * 64;
  storeShared(t, t->thread, load(t, 0, base + t->thread, 0), 1);
  t->hooks->block_sync(t, 2);
  store(t, 1, base + t->thread, loadShared(t, 63 - t->thread, 3), 4);
}

/* out[i] = the largest power of two that divides the address of the shared memory */
KERNEL(alignment) {
  const uintptr_t address = (uintptr_t)t->shared;
  store(t, 1, t->block * 64 + t->thread, (float)(address & -address), 0);
}

/* The same without the barrier. */
KERNEL(missing_barrier) {
  const int64_t base = t->block * 64;
  storeShared(t, t->thread, load(t, 0, base + t->thread, 0), 1);
  store(t, 1, base + t->thread, loadShared(t, 63 - t->thread, 3), 4);
}

/* Overwrites what others may still have to read. */
KERNEL(overwrite) {
  const int64_t base = t->block * 64;
  storeShared(t, t->thread, load(t, 0, base + t->thread, 0), 1);
  t->hooks->block_sync(t, 2);
  store(t, 1, base + t->thread, loadShared(t, 63 - t->thread, 3), 4);
  storeShared(t, t->thread, 0, 5);
}

/* A unit barrier orders the lanes of a unit only: thread 63-i is of the other unit. */
KERNEL(weak_barrier) {
  const int64_t base = t->block * 64;
  storeShared(t, t->thread, load(t, 0, base + t->thread, 0), 1);
  t->hooks->unit_sync(t, 2);
  store(t, 1, base + t->thread, loadShared(t, 63 - t->thread, 3), 4);
}

/* Reverse within each unit: here a unit barrier is enough. */
KERNEL(good_unit_reverse) {
  const int64_t base = t->block * 64;
  const int32_t unit = t->thread / kLanes * kLanes;
  storeShared(t, t->thread, load(t, 0, base + t->thread, 0), 1);
  t->hooks->unit_sync(t, 2);
  store(t, 1, base + t->thread, loadShared(t, unit + kLanes - 1 - (t->thread - unit), 3), 4);
}

/* out[block] = sum of the unit's 32 values, one unit a block */
KERNEL(good_sum) {
  union {
    float f;
    uint32_t u;
  } v;
  v.f = load(t, 0, t->block * kLanes + t->thread, 0);
  for (int32_t d = kLanes / 2; d > 0; d /= 2) {
    union {
      float f;
      uint32_t u;
    } other;
    other.u = (uint32_t)t->hooks->shuffle_xor(t, v.u, d, 1);
    v.f += other.f;
  }
  if (t->thread == 0)
    store(t, 1, t->block, v.f, 2);
}

/* Reads one element behind the end in the last block. */
KERNEL(out_of_bounds) {
  const int64_t i = t->block * 64 + t->thread;
  if (i <= t->dims[0])
    store(t, 1, i < t->dims[0] ? i : 0, load(t, 0, i, 0), 1);
}

/* Half of the threads skip the barrier. */
KERNEL(divergent_barrier) {
  if (t->thread < kLanes)
    t->hooks->block_sync(t, 0);
  store(t, 1, t->block * 64 + t->thread, 0, 1);
}

/* One lane does not come to the shuffle. */
KERNEL(divergent_shuffle) {
  if (t->thread != 3)
    t->hooks->shuffle_xor(t, 0, 1, 0);
  store(t, 1, t->block * kLanes + t->thread, 0, 1);
}

KERNEL(uninitialised) { store(t, 1, t->block * 64 + t->thread, loadShared(t, t->thread, 0), 1); }

/* Two blocks write the same element. */
KERNEL(block_race) { store(t, 1, t->thread, load(t, 0, t->thread, 0), 1); }

KERNEL(writes_input) { store(t, 0, t->block * 64 + t->thread, 0, 0); }

/* Threads of a unit touch elements 8 apart: a sector each; and the same bank each. */
KERNEL(strided) {
  const int64_t i = t->block * 64 + t->thread;
  storeShared(t, t->thread * kLanes, load(t, 0, i * 8 % t->dims[0], 0), 1);
  store(t, 1, i, loadShared(t, t->thread * kLanes, 2), 3);
}

/* out = sums of eight rows of 64; half a sector's threads leave the first row out. */
KERNEL(late) {
  float sum = 0;
  for (int64_t row = t->thread < 4; row < 8; ++row)
    sum += loadAgain(t, 0, row * 64 + t->thread, row, 0);
  store(t, 1, t->thread, sum, 1);
}

/* Does not announce that it writes which block came when: shows the order in which blocks run. out[block] = how many
 * blocks ran before; out[blocks] counts them, beginning with a NaN, the poison. */
static void note(fusec_sim_thread *t, int64_t i) {
  float *out = (float *)t->buffers[1], *count = out + t->dims[0] - 1;
  out[i] = *count != *count ? 0 : *count;
  *count = out[i] + 1;
}
KERNEL(block_order) {
  if (t->thread == 0)
    note(t, t->block);
}

/* The same for the threads of one block: out[thread] = how many came before it. */
KERNEL(thread_order) {
  load(t, 0, t->thread, 0);
  note(t, t->thread);
}

/* Blocks far from each other write one element; each is alone with the rest. */
KERNEL(far_race) {
  const int64_t i = t->block * 64 + t->thread;
  store(t, 1, i, load(t, 0, i, 0), 1);
  if (i == t->dims[0] - 1)
    store(t, 1, 0, 1, 2);
}

/* Each thread reads what the block on its left writes. */
KERNEL(far_read) {
  const int64_t i = t->block * 64 + t->thread;
  store(t, 1, i, i >= 64 ? load(t, 1, i - 64, 0) : 1, 1);
}

/* A lane that reads what another one of its unit wrote, with nothing between. */
KERNEL(unit_race) {
  storeShared(t, t->thread, 1, 0);
  store(t, 1, t->block * 64 + t->thread, loadShared(t, t->thread ^ 1, 1), 2);
}

/* Leaves the second half unwritten. */
KERNEL(half) {
  const int64_t i = t->block * 64 + t->thread;
  if (i < t->dims[0] / 2)
    store(t, 1, i, load(t, 0, i, 0), 1);
}

/* Counts its own operations: 3 for each thread. */
KERNEL(three_flops) {
  const int64_t i = t->block * 64 + t->thread;
  const float x = load(t, 0, i, 0);
  store(t, 1, i, x * x + x / 2, 1);
  t->flops += 3;
}

KERNEL(fails) {
  if (t->thread == 5)
    t->hooks->fail(t, FUSEC_KERNEL_INDEX_OUT_OF_RANGE, 0);
}

/* Two phases: out = x, then out[0] = the last element of out, which another block wrote. */
static void copyBlock(fusec_sim_thread *t, int64_t block) {
  const int64_t i = block * 64 + t->thread;
  store(t, 1, i, load(t, 0, i, 0), 1);
}
static void takeLast(fusec_sim_thread *t) {
  if (t->block == 0 && t->thread == 0)
    store(t, 1, 0, load(t, 1, t->dims[0] - 1, 3), 4);
}
KERNEL(grid_last) { copyBlock(t, t->block); }
ENTRY(grid_last_p1) { takeLast(t); }
ENTRY(grid_last_grid) {
  for (int64_t b = t->block; b < t->dims[0] / 64; b += t->dims[1])
    copyBlock(t, b);
  t->hooks->grid_sync(t, 2);
  takeLast(t);
}

/* The same without the barrier between the phases. */
KERNEL(grid_race) { copyBlock(t, t->block); }
ENTRY(grid_race_p1) { takeLast(t); }
ENTRY(grid_race_grid) {
  for (int64_t b = t->block; b < t->dims[0] / 64; b += t->dims[1])
    copyBlock(t, b);
  takeLast(t);
}

/* Block 1 ends without coming to the barrier. */
KERNEL(grid_deadlock) { copyBlock(t, t->block); }
ENTRY(grid_deadlock_p1) { takeLast(t); }
ENTRY(grid_deadlock_grid) {
  if (t->block != 1)
    t->hooks->grid_sync(t, 2);
}

/* Half of a block's threads wait for the grid, the others for their block. */
KERNEL(grid_diverges) { copyBlock(t, t->block); }
ENTRY(grid_diverges_p1) { takeLast(t); }
ENTRY(grid_diverges_grid) {
  if (t->thread < 32)
    t->hooks->grid_sync(t, 2);
  else
    t->hooks->block_sync(t, 3);
}

/* A barrier of the grid where blocks run in any order. */
KERNEL(grid_in_phase) { t->hooks->grid_sync(t, 0); }

/* Two phases side by side: out = x in the lower half; then each block adds to its 64 elements those of the next block,
 * in the upper half. Block b of the first phase raises counter b. */
static void lowerHalf(fusec_sim_thread *t, int64_t block, int synced) {
  t->hooks->begin_block(t, 0, block, 0);
  copyBlock(t, block);
  if (synced)
    t->hooks->block_sync(t, 2);
  t->hooks->signal(t, block, 3);
}
static void waitFor(fusec_sim_thread *t, int64_t counter, int64_t count, int32_t site) {
  t->hooks->wait(t, counter, counter, count, site);
}
static void upperHalf(fusec_sim_thread *t, int64_t block) {
  const int64_t size = t->dims[0], i = block * 64 + t->thread;
  t->hooks->block_sync(t, 7);
  store(t, 1, size + i, load(t, 1, i, 8) + load(t, 1, (i + 64) % size, 9), 10);
}
/* `waits` for block b: its own counter and the next one. */
#define COUNTED(name, synced, waits)                                                               \
  KERNEL(name) { copyBlock(t, t->block); }                                                         \
  ENTRY(name##_p1) { upperHalf(t, t->block); }                                                     \
  ENTRY(name##_grid) {                                                                             \
    const int64_t blocks = t->dims[0] / 64;                                                        \
    for (int64_t b = t->block; b < blocks; b += t->dims[1])                                        \
      lowerHalf(t, b, synced);                                                                     \
    for (int64_t b = t->block; b < blocks; b += t->dims[1]) {                                      \
      t->hooks->begin_block(t, 1, b, 4);                                                           \
      waits;                                                                                       \
      upperHalf(t, b);                                                                             \
    }                                                                                              \
  }
COUNTED(counted, 1, waitFor(t, b, 1, 5); waitFor(t, (b + 1) % blocks, 1, 6))
COUNTED(counted_range, 1, t->hooks->wait(t, 0, blocks - 1, 1, 5))
COUNTED(counted_missing, 1, waitFor(t, b, 1, 5))
COUNTED(counted_unsynced, 0, t->hooks->wait(t, 0, blocks - 1, 1, 5))
COUNTED(counted_never, 1, t->hooks->wait(t, 0, blocks - 1, 2, 5))
COUNTED(counted_stranger, 1, waitFor(t, -1, 1, 5))

/* Every block raises counter 0, and block 0 waits until one has: another one may come first. */
KERNEL(counted_early) { copyBlock(t, t->block); }
ENTRY(counted_early_p1) {}
ENTRY(counted_early_grid) {
  const int64_t blocks = t->dims[0] / 64;
  for (int64_t b = t->block; b < blocks; b += t->dims[1]) {
    t->hooks->begin_block(t, 0, b, 0);
    copyBlock(t, b);
    t->hooks->block_sync(t, 2);
    t->hooks->signal(t, 0, 3);
    if (b == 0)
      waitFor(t, 0, 1, 4);
  }
}

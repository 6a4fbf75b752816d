/* What this machine can do: roofline THREADS BYTES [copy] -> one line of JSON with the fused multiply-adds of fp32
 * (Gflop/s), and the speed of reading and of copying a working set of that many bytes (GB/s; a copy counts both ways);
 * copy: that alone. Compiled on the fly with -O3 -march=native. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef __AVX512F__
enum { lanes = 16, chains = 24 }; /* independent sums: latency times two units, within the registers */
#define REGISTER "v"
#else
enum { lanes = 8, chains = 12 };
#define REGISTER "x"
#endif
typedef float Vector __attribute__((vector_size(lanes * 4)));
enum { repetitions = 5 };
static const double leastSeconds = 0.1;

enum { allKinds = 3, copyKind = 2 };
static int threads, firstKind = 0;
static size_t bytesEach;
static pthread_barrier_t barrier;
static double best[allKinds]; /* by measurement: Gflop/s, read GB/s, copy GB/s, of all threads together */
static long rounds;    /* of the measurement now going on, equal for all threads */
static volatile float sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float multiplyAdd(long many) {
  Vector sums[chains], factor, addend, total = {0};
  for (int i = 0; i < lanes; ++i) {
    factor[i] = 0.999f;
    addend[i] = 1e-3f * (float)i;
  }
  for (int c = 0; c < chains; ++c)
    sums[c] = addend * (float)c;
  for (long r = 0; r < many; ++r) {
    __asm__ volatile("" : "+" REGISTER (factor), "+" REGISTER (addend)); /* as many rounds, and no operand in memory */
#pragma GCC unroll 32
    for (int c = 0; c < chains; ++c)
      sums[c] = sums[c] * factor + addend;
  }
  for (int c = 0; c < chains; ++c)
    total += sums[c];
  return total[0] + total[lanes - 1];
}

static float readAll(const Vector *from, size_t vectors) {
  Vector sums[8] = {{0}};
  for (size_t i = 0; i + 8 <= vectors; i += 8)
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c)
      sums[c] += from[i + (size_t)c];
  for (int c = 1; c < 8; ++c)
    sums[0] += sums[c];
  return sums[0][0];
}

/* One measurement on all threads at once; `which` as in `best`. Gives Gflop or GB of this thread. */
static double work(int which, Vector *from, Vector *to) {
  size_t vectors = bytesEach / sizeof(Vector);
  if (which == 0) {
    sink = multiplyAdd(rounds * 1000);
    return 2e-9 * lanes * chains * 1000.0 * (double)rounds;
  }
  for (long r = 0; r < rounds; ++r) {
    if (which == 1)
      sink = readAll(from, vectors);
    else
      memcpy(to, from, bytesEach / 2);
    __asm__ volatile("" ::: "memory");
  }
  return 1e-9 * (double)bytesEach * (double)rounds;
}

/* Large ones in huge pages, which copies take less time for: no TLB misses. */
static Vector *pages(void) {
  const size_t huge = 2 << 20;
  Vector *memory = NULL;
  if (posix_memalign((void **)&memory, bytesEach >= 2 * huge ? huge : 4096, bytesEach))
    exit(1);
  if (bytesEach >= 2 * huge)
    madvise(memory, bytesEach / huge * huge, MADV_HUGEPAGE);
  return memory;
}

static void *body(void *first) {
  Vector *from = pages(), *to = pages();
  memset(from, 0, bytesEach);
  memset(to, 1, bytesEach);
  for (int which = firstKind; which < allKinds; ++which) {
    pthread_barrier_wait(&barrier);
    if (first) /* as many rounds as fill the time */
      for (rounds = 1;; rounds *= 2) {
        double start = now();
        work(which, from, to);
        if (now() - start > leastSeconds)
          break;
      }
    for (int r = 0; r < repetitions; ++r) {
      pthread_barrier_wait(&barrier);
      double start = now();
      double done = work(which, from, to);
      pthread_barrier_wait(&barrier);
      double rate = done * threads / (now() - start);
      if (first && rate > best[which])
        best[which] = rate;
    }
  }
  return NULL;
}

int main(int count, char **words) {
  if (count == 4 && strcmp(words[3], "copy") == 0)
    firstKind = copyKind;
  else if (count != 3)
    return 2;
  if ( (threads = atoi(words[1])) < 1 || threads > 256)
    return 2;
  /* A share of the working set each, in whole pages. */
  bytesEach = ((size_t)atoll(words[2]) / (size_t)threads + 4095) / 4096 * 4096;
  if (bytesEach < 4096)
    bytesEach = 4096;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  pthread_t others[256];
  for (int i = 1; i < threads; ++i)
    if (pthread_create(&others[i], NULL, body, NULL))
      return 1;
  body(&threads);
  for (int i = 1; i < threads; ++i)
    pthread_join(others[i], NULL);
  if (firstKind != copyKind)
    printf("{\"gflops\":%.2f,\"read_gbs\":%.2f,\"copy_gbs\":%.2f}\n", best[0], best[1],
           best[copyKind]);
  else
    printf("{\"copy_gbs\":%.2f}\n", best[copyKind]);
  return 0;
}

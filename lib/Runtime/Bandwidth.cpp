// Plain loops over memory. The runtime is built for any x86-64: each loop names the instructions that it is made of.
#include "Runtime/Bandwidth.h"

#include <immintrin.h>

namespace fusec::rt {

namespace {

// Eight sums in flight: the latency of an addition times two loads a cycle.
[[gnu::target("avx512f")]] void readWide(const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (const float *end = p + bytes / sizeof(float); p != end; p += 128) {
    a = _mm512_add_ps(a, _mm512_load_ps(p));
    b = _mm512_add_ps(b, _mm512_load_ps(p + 16));
    c = _mm512_add_ps(c, _mm512_load_ps(p + 32));
    d = _mm512_add_ps(d, _mm512_load_ps(p + 48));
    e = _mm512_add_ps(e, _mm512_load_ps(p + 64));
    f = _mm512_add_ps(f, _mm512_load_ps(p + 80));
    g = _mm512_add_ps(g, _mm512_load_ps(p + 96));
    h = _mm512_add_ps(h, _mm512_load_ps(p + 112));
  }
  // The sums are wanted.
  __asm__ volatile(""
                   :
                   : "v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f), "v"(g), "v"(h)
                   : "memory");
}

[[gnu::target("avx512f")]] void copyWide(void *to, const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  float *q = static_cast<float *>(to);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 64, q += 64) {
    const __m512 a = _mm512_load_ps(p), b = _mm512_load_ps(p + 16), c = _mm512_load_ps(p + 32),
                 d = _mm512_load_ps(p + 48);
    _mm512_store_ps(q, a);
    _mm512_store_ps(q + 16, b);
    _mm512_store_ps(q + 32, c);
    _mm512_store_ps(q + 48, d);
    __asm__ volatile("" : : : "memory"); // a loop, not a call of memcpy
  }
}

[[gnu::target("avx512f")]] void streamWide(void *to, const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  float *q = static_cast<float *>(to);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 64, q += 64) {
    const __m512 a = _mm512_load_ps(p), b = _mm512_load_ps(p + 16), c = _mm512_load_ps(p + 32),
                 d = _mm512_load_ps(p + 48);
    _mm512_stream_ps(q, a);
    _mm512_stream_ps(q + 16, b);
    _mm512_stream_ps(q + 32, c);
    _mm512_stream_ps(q + 48, d);
  }
  _mm_sfence();
}

[[gnu::target("avx")]] void readNarrow(const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (const float *end = p + bytes / sizeof(float); p != end; p += 64) {
    a = _mm256_add_ps(a, _mm256_load_ps(p));
    b = _mm256_add_ps(b, _mm256_load_ps(p + 8));
    c = _mm256_add_ps(c, _mm256_load_ps(p + 16));
    d = _mm256_add_ps(d, _mm256_load_ps(p + 24));
    e = _mm256_add_ps(e, _mm256_load_ps(p + 32));
    f = _mm256_add_ps(f, _mm256_load_ps(p + 40));
    g = _mm256_add_ps(g, _mm256_load_ps(p + 48));
    h = _mm256_add_ps(h, _mm256_load_ps(p + 56));
  }
  __asm__ volatile(""
                   :
                   : "x"(a), "x"(b), "x"(c), "x"(d), "x"(e), "x"(f), "x"(g), "x"(h)
                   : "memory");
}

[[gnu::target("avx")]] void copyNarrow(void *to, const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  float *q = static_cast<float *>(to);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 32, q += 32) {
    const __m256 a = _mm256_load_ps(p), b = _mm256_load_ps(p + 8), c = _mm256_load_ps(p + 16),
                 d = _mm256_load_ps(p + 24);
    _mm256_store_ps(q, a);
    _mm256_store_ps(q + 8, b);
    _mm256_store_ps(q + 16, c);
    _mm256_store_ps(q + 24, d);
    __asm__ volatile("" : : : "memory");
  }
}

[[gnu::target("avx")]] void streamNarrow(void *to, const void *from, size_t bytes) {
  const float *p = static_cast<const float *>(from);
  float *q = static_cast<float *>(to);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 32, q += 32) {
    const __m256 a = _mm256_load_ps(p), b = _mm256_load_ps(p + 8), c = _mm256_load_ps(p + 16),
                 d = _mm256_load_ps(p + 24);
    _mm256_stream_ps(q, a);
    _mm256_stream_ps(q + 8, b);
    _mm256_stream_ps(q + 16, c);
    _mm256_stream_ps(q + 24, d);
  }
  _mm_sfence();
}

} // namespace

Sweeps sweepsFor(int level) {
  return level >= 4 ? Sweeps{readWide, copyWide, streamWide}
                    : Sweeps{readNarrow, copyNarrow, streamNarrow};
}

} // namespace fusec::rt

// Plain loops over memory. The runtime is built for any x86-64: each loop names the instructions that it is made of.
// A copy goes from the first half of its memory to the second.
#include "Runtime/Bandwidth.h"

#include <algorithm>
#include <immintrin.h>

namespace fusec::rt {

namespace {

constexpr size_t kPageBytes = 4096, kRowsAtOnce = 4;

// Eight sums in flight: the latency of an addition times two loads a cycle.
[[gnu::target("avx512f")]] void readWide(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
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

[[gnu::target("avx512f")]] void copyWide(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *end = q; p != end; p += 64, q += 64) {
    const __m512 a = _mm512_load_ps(p), b = _mm512_load_ps(p + 16), c = _mm512_load_ps(p + 32),
                 d = _mm512_load_ps(p + 48);
    _mm512_store_ps(q, a);
    _mm512_store_ps(q + 16, b);
    _mm512_store_ps(q + 32, c);
    _mm512_store_ps(q + 48, d);
    __asm__ volatile("" : : : "memory"); // a loop, not a call of memcpy
  }
}

[[gnu::target("avx512f")]] void streamWide(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *end = q; p != end; p += 64, q += 64) {
    const __m512 a = _mm512_load_ps(p), b = _mm512_load_ps(p + 16), c = _mm512_load_ps(p + 32),
                 d = _mm512_load_ps(p + 48);
    _mm512_stream_ps(q, a);
    _mm512_stream_ps(q + 16, b);
    _mm512_stream_ps(q + 32, c);
    _mm512_stream_ps(q + 48, d);
  }
  _mm_sfence();
}

/// Along four rows at once, a vector of each in turn: rows of a page, or what there is room for.
[[gnu::target("avx512f")]] void copyRowsWide(void *memory, size_t bytes) {
  const size_t row = std::min(kPageBytes, bytes / 2 / kRowsAtOnce) / sizeof(float);
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *all = q; p != all; p += (kRowsAtOnce - 1) * row, q += (kRowsAtOnce - 1) * row)
    for (const float *end = p + row; p != end; p += 16, q += 16) {
      const __m512 a = _mm512_load_ps(p), b = _mm512_load_ps(p + row),
                   c = _mm512_load_ps(p + 2 * row), d = _mm512_load_ps(p + 3 * row);
      _mm512_store_ps(q, a);
      _mm512_store_ps(q + row, b);
      _mm512_store_ps(q + 2 * row, c);
      _mm512_store_ps(q + 3 * row, d);
    }
}

/// What a product of two rows with the memory does: two fused multiply-adds for each vector of it.
[[gnu::target("avx512f")]] void productWide(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  const __m512 first = _mm512_set1_ps(0.5f), second = _mm512_set1_ps(0.25f);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 64) {
    const __m512 v = _mm512_load_ps(p), w = _mm512_load_ps(p + 16), x = _mm512_load_ps(p + 32),
                 y = _mm512_load_ps(p + 48);
    a = _mm512_fmadd_ps(v, first, a);
    b = _mm512_fmadd_ps(v, second, b);
    c = _mm512_fmadd_ps(w, first, c);
    d = _mm512_fmadd_ps(w, second, d);
    e = _mm512_fmadd_ps(x, first, e);
    f = _mm512_fmadd_ps(x, second, f);
    g = _mm512_fmadd_ps(y, first, g);
    h = _mm512_fmadd_ps(y, second, h);
  }
  __asm__ volatile(""
                   :
                   : "v"(a), "v"(b), "v"(c), "v"(d), "v"(e), "v"(f), "v"(g), "v"(h)
                   : "memory");
}

[[gnu::target("avx")]] void readNarrow(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
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

[[gnu::target("avx")]] void copyNarrow(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *end = q; p != end; p += 32, q += 32) {
    const __m256 a = _mm256_load_ps(p), b = _mm256_load_ps(p + 8), c = _mm256_load_ps(p + 16),
                 d = _mm256_load_ps(p + 24);
    _mm256_store_ps(q, a);
    _mm256_store_ps(q + 8, b);
    _mm256_store_ps(q + 16, c);
    _mm256_store_ps(q + 24, d);
    __asm__ volatile("" : : : "memory");
  }
}

[[gnu::target("avx")]] void streamNarrow(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *end = q; p != end; p += 32, q += 32) {
    const __m256 a = _mm256_load_ps(p), b = _mm256_load_ps(p + 8), c = _mm256_load_ps(p + 16),
                 d = _mm256_load_ps(p + 24);
    _mm256_stream_ps(q, a);
    _mm256_stream_ps(q + 8, b);
    _mm256_stream_ps(q + 16, c);
    _mm256_stream_ps(q + 24, d);
  }
  _mm_sfence();
}

/// Along four rows at once, a vector of each in turn: rows of a page, or what there is room for.
[[gnu::target("avx,fma")]] void copyRowsNarrow(void *memory, size_t bytes) {
  const size_t row = std::min(kPageBytes, bytes / 2 / kRowsAtOnce) / sizeof(float);
  const float *p = static_cast<const float *>(memory);
  float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
  for (const float *all = q; p != all; p += (kRowsAtOnce - 1) * row, q += (kRowsAtOnce - 1) * row)
    for (const float *end = p + row; p != end; p += 8, q += 8) {
      const __m256 a = _mm256_load_ps(p), b = _mm256_load_ps(p + row),
                   c = _mm256_load_ps(p + 2 * row), d = _mm256_load_ps(p + 3 * row);
      _mm256_store_ps(q, a);
      _mm256_store_ps(q + row, b);
      _mm256_store_ps(q + 2 * row, c);
      _mm256_store_ps(q + 3 * row, d);
    }
}

/// What a product of two rows with the memory does: two fused multiply-adds for each vector of it.
[[gnu::target("avx,fma")]] void productNarrow(void *memory, size_t bytes) {
  const float *p = static_cast<const float *>(memory);
  __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  const __m256 first = _mm256_set1_ps(0.5f), second = _mm256_set1_ps(0.25f);
  for (const float *end = p + bytes / sizeof(float); p != end; p += 32) {
    const __m256 v = _mm256_load_ps(p), w = _mm256_load_ps(p + 8), x = _mm256_load_ps(p + 16),
                 y = _mm256_load_ps(p + 24);
    a = _mm256_fmadd_ps(v, first, a);
    b = _mm256_fmadd_ps(v, second, b);
    c = _mm256_fmadd_ps(w, first, c);
    d = _mm256_fmadd_ps(w, second, d);
    e = _mm256_fmadd_ps(x, first, e);
    f = _mm256_fmadd_ps(x, second, f);
    g = _mm256_fmadd_ps(y, first, g);
    h = _mm256_fmadd_ps(y, second, h);
  }
  __asm__ volatile(""
                   :
                   : "x"(a), "x"(b), "x"(c), "x"(d), "x"(e), "x"(f), "x"(g), "x"(h)
                   : "memory");
}

constexpr Sweep kWide[] = {{"read", readWide},
                           {"copy", copyWide},
                           {"stream", streamWide},
                           {"rows", copyRowsWide},
                           {"product", productWide}};
constexpr Sweep kNarrow[] = {{"read", readNarrow},
                             {"copy", copyNarrow},
                             {"stream", streamNarrow},
                             {"rows", copyRowsNarrow},
                             {"product", productNarrow}};

} // namespace

std::span<const Sweep> sweepsFor(int level) {
  return level >= 4 ? std::span<const Sweep>(kWide) : std::span<const Sweep>(kNarrow);
}

} // namespace fusec::rt

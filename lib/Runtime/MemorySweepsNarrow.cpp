#include "Runtime/SweepLoops.h"

#include <immintrin.h>

namespace fusec::rt {

namespace {

struct Narrow {
  using Vector = __m256;
  static constexpr size_t kFloats = 8;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector all(float value) { return _mm256_set1_ps(value); }
  static Vector load(const float *p) { return _mm256_load_ps(p); }
  static void store(float *p, Vector v) { _mm256_store_ps(p, v); }
  static void stream(float *p, Vector v) { _mm256_stream_ps(p, v); }
  static void fence() { _mm_sfence(); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

} // namespace

const Sweep *const kNarrowSweeps = SweepLoops<Narrow>::kSweeps;

} // namespace fusec::rt

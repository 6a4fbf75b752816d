#include "Runtime/SweepLoops.h"

#include <immintrin.h>

namespace fusec::rt {

namespace {

struct Wide {
  using Vector = __m512;
  static constexpr size_t kFloats = 16;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector all(float value) { return _mm512_set1_ps(value); }
  static Vector load(const float *p) { return _mm512_load_ps(p); }
  static void store(float *p, Vector v) { _mm512_store_ps(p, v); }
  static void stream(float *p, Vector v) { _mm512_stream_ps(p, v); }
  static void fence() { _mm_sfence(); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};

} // namespace

const Sweep *const kWideSweeps = SweepLoops<Wide>::kSweeps;

} // namespace fusec::rt

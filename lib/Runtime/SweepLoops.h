#pragma once
#include "Runtime/MemorySweeps.h"

namespace fusec::rt {

/// The loops over memory, in vectors of `V`: their type, how many floats they have, and what is done with them. A copy
/// goes from the first half of the memory to the second. What includes this is compiled for processors that have V and
/// calls nothing else, so that no code for them is shared with other files.
template <typename V> struct SweepLoops {
  using Vector = typename V::Vector;
  static constexpr size_t kStep = V::kFloats;
  static constexpr size_t kPageBytes = 4096, kRowsAtOnce = 4;

  /// Eight sums in flight: the latency of an addition times two loads a cycle.
  static void read(void *memory, size_t bytes) {
    const float *p = static_cast<const float *>(memory);
    Vector a = V::zero(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (const float *end = p + bytes / sizeof(float); p != end; p += 8 * kStep) {
      a = V::add(a, V::load(p));
      b = V::add(b, V::load(p + kStep));
      c = V::add(c, V::load(p + 2 * kStep));
      d = V::add(d, V::load(p + 3 * kStep));
      e = V::add(e, V::load(p + 4 * kStep));
      f = V::add(f, V::load(p + 5 * kStep));
      g = V::add(g, V::load(p + 6 * kStep));
      h = V::add(h, V::load(p + 7 * kStep));
    }
    want(a, b, c, d, e, f, g, h);
  }

  static void copy(void *memory, size_t bytes) { copyWith<V::store>(memory, bytes); }

  static void stream(void *memory, size_t bytes) {
    copyWith<V::stream>(memory, bytes);
    V::fence();
  }

  /// Along four rows at once, a vector of each in turn: rows of a page, or what there is room for.
  static void rows(void *memory, size_t bytes) {
    const size_t part = bytes / 2 / kRowsAtOnce;
    const size_t row = (part < kPageBytes ? part : kPageBytes) / sizeof(float);
    const float *p = static_cast<const float *>(memory);
    float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
    for (const float *all = q; p != all; p += (kRowsAtOnce - 1) * row, q += (kRowsAtOnce - 1) * row)
      for (const float *end = p + row; p != end; p += kStep, q += kStep) {
        const Vector a = V::load(p), b = V::load(p + row), c = V::load(p + 2 * row),
                     d = V::load(p + 3 * row);
        V::store(q, a);
        V::store(q + row, b);
        V::store(q + 2 * row, c);
        V::store(q + 3 * row, d);
      }
  }

  /// What a product of two rows with the memory does: two fused multiply-adds for each vector of it.
  static void product(void *memory, size_t bytes) {
    const float *p = static_cast<const float *>(memory);
    Vector a = V::zero(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    const Vector first = V::all(0.5f), second = V::all(0.25f);
    for (const float *end = p + bytes / sizeof(float); p != end; p += 4 * kStep) {
      const Vector v = V::load(p), w = V::load(p + kStep), x = V::load(p + 2 * kStep),
                   y = V::load(p + 3 * kStep);
      a = V::fma(v, first, a);
      b = V::fma(v, second, b);
      c = V::fma(w, first, c);
      d = V::fma(w, second, d);
      e = V::fma(x, first, e);
      f = V::fma(x, second, f);
      g = V::fma(y, first, g);
      h = V::fma(y, second, h);
    }
    want(a, b, c, d, e, f, g, h);
  }

  static constexpr Sweep kSweeps[kSweepCount] = {
      {"read", read}, {"copy", copy}, {"stream", stream}, {"rows", rows}, {"product", product}};

private:
  /// What was computed is wanted.
  static void want(Vector a, Vector b, Vector c, Vector d, Vector e, Vector f, Vector g, Vector h) {
    __asm__ volatile(""
                     :
                     : "x"(a), "x"(b), "x"(c), "x"(d), "x"(e), "x"(f), "x"(g), "x"(h)
                     : "memory");
  }

  template <void (*put)(float *, Vector)> static void copyWith(void *memory, size_t bytes) {
    const float *p = static_cast<const float *>(memory);
    float *q = static_cast<float *>(memory) + bytes / 2 / sizeof(float);
    for (const float *end = q; p != end; p += 4 * kStep, q += 4 * kStep) {
      const Vector a = V::load(p), b = V::load(p + kStep), c = V::load(p + 2 * kStep),
                   d = V::load(p + 3 * kStep);
      put(q, a);
      put(q + kStep, b);
      put(q + 2 * kStep, c);
      put(q + 3 * kStep, d);
      __asm__ volatile("" : : : "memory"); // a loop, not a call of memcpy
    }
  }
};

} // namespace fusec::rt

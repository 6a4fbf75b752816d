#pragma once
#include "Support/MathPoly.h"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

namespace fusec {

// The polynomials are templates over a "number" N: types F (float value), I (integer of F's width) and B (truth
// value), and the operations of NativeNumber below, each one IEEE or two's complement operation. The interpreters use
// NativeNumber; the code generator's number makes instructions (Codegen/Maths.cpp).

template <typename Float> struct NativeNumber {
  using F = Float;
  using Native = Float; // the format, also where F is something else
  using I = std::conditional_t<sizeof(Float) == 4, int32_t, int64_t>;
  using U = std::make_unsigned_t<I>;
  using B = bool;
  static F constant(double v) { return static_cast<F>(v); }
  static I integer(int64_t v) { return static_cast<I>(v); }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  static F sqrt(F a) { return std::sqrt(a); }
  static F trunc(F a) { return std::trunc(a); }
  static B less(F a, F b) { return a < b; } // false on NaN, as is the next one
  static B equal(F a, F b) { return a == b; }
  static B isNan(F a) { return a != a; }
  static B both(B a, B b) { return a && b; }
  static B either(B a, B b) { return a || b; }
  static B negate(B a) { return !a; }
  static F select(B p, F a, F b) { return p ? a : b; }
  static I selectInt(B p, I a, I b) { return p ? a : b; }
  static I bits(F a) { return std::bit_cast<I>(a); }
  static F fromBits(I a) { return std::bit_cast<F>(a); }
  static I addInt(I a, I b) { return static_cast<I>(static_cast<U>(a) + static_cast<U>(b)); }
  static I subInt(I a, I b) { return static_cast<I>(static_cast<U>(a) - static_cast<U>(b)); }
  static I andInt(I a, I b) { return a & b; }
  static I orInt(I a, I b) { return a | b; }
  static I xorInt(I a, I b) { return a ^ b; }
  static I shiftLeft(I a, int n) { return static_cast<I>(static_cast<U>(a) << n); }
  static I shiftRight(I a, int n) { return a >> n; } // arithmetic
  static B equalInt(I a, I b) { return a == b; }
  static B lessInt(I a, I b) { return a < b; }
  static F toFloat(I a) { return static_cast<F>(a); }
  static bool scales() { return false; }
  /// x 2^k for a whole k, rounded once; NaN for a k that is not finite. Only where scales() holds.
  static F scale(F x, F k) { return std::ldexp(x, static_cast<int>(k)); }
};

namespace mathpoly {

/// c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
template <typename N> typename N::F poly(N &n, typename N::F x, std::initializer_list<double> c) {
  const double *last = c.end() - 1;
  typename N::F r = n.constant(*last);
  while (last-- != c.begin())
    r = n.fma(r, x, n.constant(*last));
  return r;
}

template <typename N> typename N::I signMask(N &n) {
  return n.integer(sizeof(typename N::Native) == 4 ? int64_t(INT32_MIN) : INT64_MIN);
}
template <typename N> typename N::F absolute(N &n, typename N::F x) {
  return n.fromBits(n.andInt(n.bits(x), n.xorInt(signMask(n), n.integer(-1))));
}
/// |magnitude| with the sign of `sign`, for a magnitude that is not negative.
template <typename N> typename N::F withSign(N &n, typename N::F magnitude, typename N::F sign) {
  return n.fromBits(n.orInt(n.bits(magnitude), n.andInt(n.bits(sign), signMask(n))));
}
template <typename N> typename N::F nanOf(N &n) {
  return n.constant(std::numeric_limits<double>::quiet_NaN());
}
template <typename N> typename N::F infinity(N &n) {
  return n.constant(std::numeric_limits<double>::infinity());
}

} // namespace mathpoly
} // namespace fusec

#pragma once
// f32 functions that sit in inner loops (GELU, softmax, gates). Coefficients: Chebyshev fits of the stated
// function, rounded to f32.
#include "Support/MathNumber.h"

namespace fusec::mathpoly {

/// x = n ln2 + r, |r| <= ln2 / 2.
template <typename F> struct Reduced {
  F shifted; // n + magic: n in the low bits; those above leave when they are shifted into an exponent
  F n;
  F r;
};
template <typename N> Reduced<typename N::F> reduceForExp(N &n, typename N::F x, double magic) {
  using F = typename N::F;
  F shifted = n.fma(x, n.constant(0x1.715476p+0), n.constant(magic));
  F kf = n.sub(shifted, n.constant(magic));
  F r = n.fma(kf, n.constant(-0x1.62e4p-1), x);
  return {shifted, kf, n.fma(kf, n.constant(-0x1.7f7d1cp-20), r)};
}

/// e^r - 1 = r + r^2 q(r) for |r| <= ln2 / 2.
template <typename N> typename N::F expTail(N &n, typename N::F r) {
  using F = typename N::F;
  F q = poly(n, r, {0x1.fffffcp-2, 0x1.55549p-3, 0x1.5558fp-5, 0x1.123a6cp-7, 0x1.6a235ep-10});
  return n.fma(n.mul(q, r), r, r);
}

/// e^x. 2^n is applied in two halves, so that denormal results and overflow round once. Where the result is 0 nothing
/// is scaled down: a product that underflows costs an x86 core over a hundred cycles, and a masked softmax is full of
/// them. An instruction that scales by 2^n gives the same bits: 1 + p is rounded once either way, and a denormal result
/// once more.
template <typename N> typename N::F expF32(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  // Comparisons that a NaN fails leave it in place.
  auto vanishes = n.less(x, n.constant(-104.0));
  F z = n.scales() ? x : n.select(vanishes, n.constant(0), x);
  z = n.select(n.less(n.constant(89.0), z), n.constant(89.0), z);
  // In the low bits of `shifted` stands, beside n, the bias of an exponent for each half.
  const double kMagic = 0x1.8p23 + 2 * 127;
  Reduced reduced = reduceForExp(n, z, kMagic);
  F p = expTail(n, reduced.r);
  if (n.scales())
    return n.select(vanishes, n.constant(0), n.scale(n.add(p, n.constant(1)), reduced.n));
  I both = n.bits(reduced.shifted), half = n.shiftRight(both, 1);
  F s1 = n.fromBits(n.shiftLeft(half, 23));
  F s2 = n.fromBits(n.shiftLeft(n.subInt(both, half), 23));
  return n.select(vanishes, n.constant(0), n.mul(n.fma(p, s1, s1), s2));
}

/// x = 2^k m with m in [2/3, 4/3), f = m - 1: log x = k ln2 + f - f^2 / 2 + f^3 q(f).
template <typename N> typename N::F logF32(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  auto tiny = n.less(x, n.constant(0x1p-126));
  F scaled = n.select(tiny, n.mul(x, n.constant(0x1p23)), x);
  I bits = n.bits(scaled);
  I k = n.shiftRight(n.subInt(bits, n.integer(0x3f2aaaab)), 23);
  F m = n.fromBits(n.subInt(bits, n.shiftLeft(k, 23)));
  F f = n.sub(m, n.constant(1));
  F kf = n.sub(n.toFloat(k), n.select(tiny, n.constant(23), n.constant(0)));
  F q = poly(n, f,
             {0x1.555556p-2, -0x1.ffffb6p-3, 0x1.999954p-3, -0x1.557832p-3, 0x1.24b28cp-3,
              -0x1.f75896p-4, 0x1.bf1afp-4, -0x1.fcd036p-4, 0x1.d01a22p-4});
  F ff = n.mul(f, f);
  F low = n.fma(kf, n.constant(0x1.7f7d1cp-20), n.mul(n.mul(q, f), ff)); // f^3 q + k ln2_lo
  low = n.fma(ff, n.constant(-0.5), low);
  F r = n.fma(kf, n.constant(0x1.62e4p-1), n.add(f, low));
  r = n.select(n.less(x, infinity(n)), r, x); // +inf and NaN
  r = n.select(n.equal(x, n.constant(0)), n.constant(-std::numeric_limits<double>::infinity()), r);
  return n.select(n.less(x, n.constant(0)), nanOf(n), r);
}

/// |x| < 0.6: odd polynomial; otherwise 1 - 2 / (e^2|x| + 1), and 1 from 10 on. The power is below 2^30: it needs none
/// of the care of expF32, whose polynomial it shares.
template <typename N> typename N::F tanhF32(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  F a = absolute(n, x);
  F z = n.mul(x, x);
  F q = poly(n, z, {-0x1.555554p-2, 0x1.110eep-3, -0x1.b955dcp-5, 0x1.59e1c8p-6, -0x1.9ada6p-8});
  F small = n.fma(n.mul(q, z), a, a);
  F twice = n.add(a, a);
  twice = n.select(n.less(twice, n.constant(20)), twice, n.constant(20));
  Reduced reduced = reduceForExp(n, twice, 0x1.8p23);
  F power = n.add(expTail(n, reduced.r), n.constant(1));
  I exponent = n.shiftLeft(n.bits(reduced.shifted), 23);
  F e = n.fromBits(n.addInt(n.bits(power), exponent));
  F large = n.sub(n.constant(1), n.div(n.constant(2), n.add(e, n.constant(1))));
  // A NaN is not at least 0.6, and the polynomial keeps it.
  return withSign(n, n.select(n.lessEqual(n.constant(0.6), a), large, small), x);
}

/// |x| < 1: odd polynomial; otherwise 1 - 2^q(|x|) with q = log2(erfc), and 1 from 4 on. The power is between 2^-26 and
/// 2^-2 and what it lacks in precision is small beside 1: it needs none of the care of expF32.
template <typename N> typename N::F erfF32(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  F a = absolute(n, x);
  F z = n.mul(x, x);
  F p = poly(n, z,
             {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2cf6p-4, -0x1.b7f8f6p-6, 0x1.54051cp-8,
              -0x1.a3f346p-11, 0x1.49610cp-14});
  F small = n.fma(p, x, x);
  F c = n.select(n.less(a, n.constant(4)), a, n.constant(4));
  F q = poly(n, c,
             {-0x1.ef4194p-9, -0x1.9cc568p+0, -0x1.e342bp-1, -0x1.065f42p-3, 0x1.5e959ep-6,
              -0x1.b5a898p-10});
  const double kMagic = 0x1.8p23; // as in expF32, without a bias
  F shifted = n.add(q, n.constant(kMagic));
  F f = n.sub(q, n.sub(shifted, n.constant(kMagic)));
  F power =
      poly(n, f, {1, 0x1.62e42ap-1, 0x1.ebf9bcp-3, 0x1.c6b754p-5, 0x1.3cea88p-7, 0x1.5bb9aap-10});
  I exponent = n.shiftLeft(n.bits(shifted), 23);
  F large = n.sub(n.constant(1), n.fromBits(n.addInt(n.bits(power), exponent)));
  // A NaN is not at least 1, and the polynomial keeps it.
  return n.select(n.lessEqual(n.constant(1), a), withSign(n, large, x), small);
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
template <typename N> typename N::F sigmoidF32(N &n, typename N::F x) {
  using F = typename N::F;
  F one = n.constant(1);
  F e = expF32(n, n.fromBits(n.orInt(n.bits(x), signMask(n))));
  return n.div(n.select(n.less(x, n.constant(0)), e, one), n.add(one, e));
}

} // namespace fusec::mathpoly

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

/// x p(x^2) / q(x^2) for functions that go to -1 and 1: what |x| > `end` gives is what `end` does. Rounding
/// leaves a quotient of positive sums up to three units of its last place off, which may lead beyond 1. A NaN fails
/// the comparisons and stays.
template <typename N>
typename N::F oddQuotient(N &n, typename N::F x, double end, std::initializer_list<double> p,
                          std::initializer_list<double> q) {
  using F = typename N::F;
  const auto within = [&n](F v, double bound) {
    F above = n.select(n.less(v, n.constant(-bound)), n.constant(-bound), v);
    return n.select(n.less(n.constant(bound), above), n.constant(bound), above);
  };
  F c = within(x, end);
  F z = n.mul(c, c);
  return within(n.div(n.mul(c, poly(n, z, p)), poly(n, z, q)), 1);
}

template <typename N> typename N::F tanhF32(N &n, typename N::F x) {
  return oddQuotient(n, x, 9, {1, 0x1.120b16p-3, 0x1.ca2c6ep-9, 0x1.59c342p-16, 0x1.cadbc6p-27},
                     {1, 0x1.de5adp-2, 0x1.a7f7e6p-6, 0x1.588604p-12, 0x1.a1801ap-21});
}

template <typename N> typename N::F erfF32(N &n, typename N::F x) {
  return oddQuotient(
      n, x, 3.83,
      {0x1.20dd74p+0, 0x1.7f702cp-3, 0x1.ad57d4p-5, 0x1.de631p-9, 0x1.2be054p-12, 0x1.1d3f76p-19},
      {1, 0x1.ff3d48p-2, 0x1.ce4f44p-4, 0x1.e2e386p-7, 0x1.2b27ap-10, 0x1.4680dep-15});
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
template <typename N> typename N::F sigmoidF32(N &n, typename N::F x) {
  using F = typename N::F;
  F one = n.constant(1);
  F e = expF32(n, n.fromBits(n.orInt(n.bits(x), signMask(n))));
  return n.div(n.select(n.less(x, n.constant(0)), e, one), n.add(one, e));
}

} // namespace fusec::mathpoly

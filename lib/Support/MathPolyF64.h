#pragma once
// f64 functions. Coefficients: Chebyshev fits of the stated function with errors below 2^-60 of the result.
#include "Support/MathNumber.h"

namespace fusec::mathpoly {

constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54,
                 kHalfPiLow2 = -0x1.f1976b7ed8fbcp-110;

/// x = k ln2 + r with |r| <= ln2 / 2; `e` = e^r - 1 - r.
template <typename N> struct ExpParts {
  typename N::I k;
  typename N::F kf, r, e;
};
template <typename N> ExpParts<N> expParts(N &n, typename N::F x, typename N::F xLow) {
  using F = typename N::F;
  const double kMagic = 0x1.8p52;
  F shifted = n.fma(x, n.constant(0x1.71547652b82fep+0), n.constant(kMagic));
  F kf = n.sub(shifted, n.constant(kMagic));
  F r = n.fma(kf, n.constant(-kLn2), x);
  r = n.add(n.fma(kf, n.constant(-kLn2Low), r), xLow);
  F q = poly(n, r,
             {0.5, 0x1.5555555555555p-3, 0x1.5555555555557p-5, 0x1.1111111111111p-7,
              0x1.6c16c16c158f5p-10, 0x1.a01a01a0195e6p-13, 0x1.a01a01aa828e2p-16,
              0x1.71de3a5af94e9p-19, 0x1.27e4d2841fc93p-22, 0x1.ae642ad2afd38p-26,
              0x1.1f820dbf5e732p-29, 0x1.61c2c1ba3877dp-33});
  return {n.subInt(n.bits(shifted), n.integer(0x4338000000000000)), kf, r, n.mul(n.mul(q, r), r)};
}
template <typename N> typename N::F powerOfTwo(N &n, typename N::I k) {
  return n.fromBits(n.shiftLeft(n.addInt(k, n.integer(1023)), 52));
}
template <typename N> typename N::F clamp(N &n, typename N::F x, double low, double high) {
  x = n.select(n.less(x, n.constant(low)), n.constant(low), x);
  return n.select(n.less(n.constant(high), x), n.constant(high), x);
}

/// e^(x + xLow), |xLow| below an ulp of x.
template <typename N> typename N::F expF64(N &n, typename N::F x, typename N::F xLow) {
  auto vanishes = n.less(x, n.constant(-746.0)); // see expF32
  ExpParts<N> p = expParts(n, clamp(n, n.select(vanishes, n.constant(0), x), -746.0, 710.0), xLow);
  typename N::I half = n.shiftRight(p.k, 1);
  typename N::F s1 = powerOfTwo(n, half), s2 = powerOfTwo(n, n.subInt(p.k, half));
  return n.select(vanishes, n.constant(0), n.mul(n.fma(n.add(p.r, p.e), s1, s1), s2));
}
template <typename N> typename N::F expF64(N &n, typename N::F x) {
  return expF64(n, x, n.constant(0));
}

/// 2^k (e^r - 1) + (2^k - 1) up to k = 60, e^x beyond.
template <typename N> typename N::F expm1F64(N &n, typename N::F x) {
  using F = typename N::F;
  F z = clamp(n, x, -40.0, 42.0);
  ExpParts<N> p = expParts(n, z, n.constant(0));
  F s = powerOfTwo(n, p.k);
  F near = n.fma(s, n.add(p.r, p.e), n.sub(s, n.constant(1)));
  F r = n.select(n.less(n.constant(41.0), x), expF64(n, x), near);
  r = n.select(n.equal(x, n.constant(0)), x, r); // keeps -0
  return n.select(n.isNan(x), x, r);
}

/// log of a positive finite number: x = 2^k m, m in [sqrt 1/2, sqrt 2), s = (m - 1) / (m + 1);
/// log m = 2 s + s^3 q(s^2). The result is an unevaluated sum.
template <typename N> struct Sum {
  typename N::F high, low;
};
template <typename N>
Sum<N> fastTwoSum(N &n, typename N::F a, typename N::F b) { // |a| >= |b| or a == 0
  typename N::F s = n.add(a, b);
  return {s, n.sub(b, n.sub(s, a))};
}
template <typename N> struct LogParts {
  typename N::F kf, f, s, sLow, z, tail; // log m = 2 (s + sLow) + s z (2/3 + z tail)
};
template <typename N> LogParts<N> logParts(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  auto tiny = n.less(x, n.constant(0x1p-1022));
  F scaled = n.select(tiny, n.mul(x, n.constant(0x1p54)), x);
  I bits = n.bits(scaled);
  I k = n.shiftRight(n.subInt(bits, n.integer(0x3fe6a09e667f3bcd)), 52);
  F m = n.fromBits(n.subInt(bits, n.shiftLeft(k, 52)));
  F f = n.sub(m, n.constant(1)), d = n.add(f, n.constant(2));
  F s = n.div(f, d);
  // f - s d, with what d lost in rounding (d - 2 - f), over d.
  F dLow = n.sub(f, n.sub(d, n.constant(2)));
  F sLow = n.div(n.fma(n.sub(n.constant(0), s), dLow, n.fma(n.sub(n.constant(0), s), d, f)), d);
  F z = n.mul(s, s);
  F tail = poly(n, z,
                {0x1.9999999999998p-2, 0x1.249249249295dp-2, 0x1.c71c71c64bff9p-3,
                 0x1.745d17d3a387ap-3, 0x1.3b137b1bd652bp-3, 0x1.111d2b673d7e2p-3,
                 0x1.debe214e33b96p-4, 0x1.e6b660fec7379p-4});
  F kf = n.sub(n.toFloat(k), n.select(tiny, n.constant(54), n.constant(0)));
  return {kf, f, s, sLow, z, tail};
}
/// With an error near 2^-66 of the result, for pow.
template <typename N> Sum<N> logSum(N &n, typename N::F x) {
  using F = typename N::F;
  LogParts<N> p = logParts(n, x);
  F negZ = n.sub(n.constant(0), p.z);
  F zLow = n.fma(p.s, p.s, negZ); // s^2 - z
  zLow = n.fma(n.add(p.s, p.s), p.sLow, zLow);
  F cube = n.mul(p.z, p.s);
  F cubeLow = n.fma(p.z, p.s, n.sub(n.constant(0), cube));
  cubeLow = n.fma(zLow, p.s, n.fma(p.z, p.sLow, cubeLow));
  const double c = 0x1.5555555555555p-1, cLow = 0x1.5555555555555p-55;
  F t = n.mul(cube, n.constant(c));
  F tLow = n.fma(cube, n.constant(c), n.sub(n.constant(0), t));
  tLow = n.fma(cubeLow, n.constant(c), n.fma(cube, n.constant(cLow), tLow));
  tLow = n.fma(n.mul(cube, p.z), p.tail, tLow);
  Sum<N> m = fastTwoSum(n, n.add(p.s, p.s), t);
  F low = n.add(m.low, n.fma(p.sLow, n.constant(2), tLow));
  const double ln2High = 0x1.62e42fefa0000p-1,
               ln2Low = 0x1.cf79abc9e3b3ap-40; // k * ln2High is exact
  Sum<N> total = fastTwoSum(n, n.mul(p.kf, n.constant(ln2High)), m.high);
  low = n.add(total.low, n.fma(p.kf, n.constant(ln2Low), low));
  return fastTwoSum(n, total.high, low);
}

template <typename N> typename N::F logEdges(N &n, typename N::F x, typename N::F r) {
  r = n.select(n.less(x, infinity(n)), r, x); // +inf and NaN
  r = n.select(n.equal(x, n.constant(0)), n.constant(-std::numeric_limits<double>::infinity()), r);
  return n.select(n.less(x, n.constant(0)), nanOf(n), r);
}
template <typename N> typename N::F logF64(N &n, typename N::F x) {
  using F = typename N::F;
  LogParts<N> p = logParts(n, x);
  // log m = f - (f^2/2 - s (f^2/2 + R)), R = z (2/3 + z tail)
  F big = n.mul(n.mul(n.constant(0.5), p.f), p.f);
  F R = n.mul(p.z, n.fma(p.z, p.tail, n.constant(0x1.5555555555555p-1)));
  const double ln2High = 0x1.62e42fefa0000p-1, ln2Low = 0x1.cf79abc9e3b3ap-40;
  F inner = n.fma(p.s, n.add(big, R), n.mul(p.kf, n.constant(ln2Low)));
  F r = n.fma(p.kf, n.constant(ln2High), n.sub(p.f, n.sub(big, inner)));
  return logEdges(n, x, r);
}

/// log(u) x / (u - 1) with u = 1 + x: the error that u makes cancels.
template <typename N> typename N::F log1pF64(N &n, typename N::F x) {
  using F = typename N::F;
  F one = n.constant(1);
  F u = n.add(one, x), d = n.sub(u, one);
  auto same = n.equal(d, n.constant(0));
  F r = n.mul(logF64(n, u), n.div(x, n.select(same, one, d)));
  r = n.select(same, x, r);
  r = n.select(n.equal(x, infinity(n)), x, r);
  return n.select(n.equal(u, n.constant(0)), n.constant(-std::numeric_limits<double>::infinity()),
                  r);
}

template <typename N> typename N::F tanhF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x);
  F t = expm1F64(n, n.add(a, a));
  F r = n.select(n.less(n.constant(22), a), n.constant(1), n.div(t, n.add(t, n.constant(2))));
  return n.select(n.isNan(x), x, withSign(n, r, x));
}

template <typename N> typename N::F sigmoidF64(N &n, typename N::F x) {
  using F = typename N::F;
  F one = n.constant(1);
  F e = expF64(n, n.fromBits(n.orInt(n.bits(x), signMask(n))));
  return n.div(n.select(n.less(x, n.constant(0)), e, one), n.add(one, e));
}

/// |x| < 1: odd polynomial; otherwise 1 - e^(-x^2) q(1 / (1 + |x|/2)).
template <typename N> typename N::F erfF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), z = n.mul(x, x);
  F small = n.mul(x, poly(n, z,
                          {0x1.20dd750429b6dp+0, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4,
                           -0x1.b82ce312889bap-6, 0x1.565bcd0e6502dp-8, -0x1.c02db3feeb579p-11,
                           0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17, 0x1.b9e6509b9867dp-20,
                           -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30,
                           0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38}));
  F c = n.select(n.less(a, n.constant(6)), a, n.constant(6));
  F t = n.div(n.constant(1), n.fma(c, n.constant(0.5), n.constant(1)));
  F q = poly(n, t,
             {-0x1.9a478ca49a851p-26, 0x1.20ddbcf5464fap-2, 0x1.20d78ac3b1f97p-2,
              0x1.fa1e9e543956ep-3, 0x1.638b3bc3631f0p-3, 0x1.a1efa68546bfep-4,
              -0x1.96018cfbb9610p-4, 0x1.4e4c1a50c47bbp-2, -0x1.4701bc1721715p+0,
              0x1.8b7b95d08467fp+1, -0x1.86b9a37a5076bp+2, 0x1.31ba40d38016cp+3,
              -0x1.62a7d9764b6c7p+3, 0x1.27fba3ef9870dp+3, -0x1.5b0561aa5bc1dp+2,
              0x1.10ff424e04a6ap+1, -0x1.0443d4c2cf0ecp-1, 0x1.c8a7742b18ac6p-5});
  F square = n.mul(c, c), squareLow = n.fma(c, c, n.sub(n.constant(0), square));
  F e = expF64(n, n.sub(n.constant(0), square), n.sub(n.constant(0), squareLow));
  F r =
      n.select(n.less(a, n.constant(1)), small, withSign(n, n.sub(n.constant(1), n.mul(e, q)), x));
  return n.select(n.isNan(x), x, r);
}

/// x = k pi/2 + r, |r| <= pi/4. The first product is exact for any k of 51 bits: its lowest bit is that of pi/2.
template <typename N> struct Quadrant {
  typename N::I k;
  typename N::F sine, cosine; // of r
};
template <typename N> Quadrant<N> quadrant(N &n, typename N::F x) {
  using F = typename N::F;
  using I = typename N::I;
  const double kMagic = 0x1.8p52;
  F shifted = n.fma(x, n.constant(0x1.45f306dc9c883p-1), n.constant(kMagic));
  F kf = n.sub(shifted, n.constant(kMagic));
  I k = n.subInt(n.bits(shifted), n.integer(0x4338000000000000));
  F minus = n.sub(n.constant(0), kf);
  F r = n.fma(minus, n.constant(kHalfPi), x);
  r = n.fma(minus, n.constant(kHalfPiLow), r);
  r = n.fma(minus, n.constant(kHalfPiLow2), r);
  F z = n.mul(r, r);
  F s = poly(n, z,
             {-0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a018p-13,
              0x1.71de3a556c253p-19, -0x1.ae64567e6098ap-26, 0x1.61245f9d3b3f9p-33,
              -0x1.ae7c35b540f5ep-41, 0x1.9233dff606efep-49});
  F c = poly(n, z,
             {0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019cb9p-16,
              -0x1.27e4fb7709081p-22, 0x1.1eed8ddabb3c0p-29, -0x1.93949f9713b1ap-37,
              0x1.ab68e984a643fp-45});
  F sine = n.fma(n.mul(s, z), r, r);
  F halfZ = n.mul(n.constant(0.5), z);
  F w = n.sub(n.constant(1), halfZ);
  F cosine = n.add(w, n.fma(n.mul(c, z), z, n.sub(n.sub(n.constant(1), w), halfZ)));
  auto inside = n.less(absolute(n, x), n.constant(0x1p51));
  return {k, n.select(inside, sine, nanOf(n)), n.select(inside, cosine, nanOf(n))};
}
template <typename N> typename N::F sineOf(N &n, const Quadrant<N> &q, int64_t shift) {
  typename N::I k = n.addInt(q.k, n.integer(shift));
  auto odd = n.equalInt(n.andInt(k, n.integer(1)), n.integer(1));
  typename N::F v = n.select(odd, q.cosine, q.sine);
  return n.fromBits(n.xorInt(n.bits(v), n.shiftLeft(n.andInt(k, n.integer(2)), 62)));
}
template <typename N> typename N::F sinF64(N &n, typename N::F x) {
  return n.select(n.equal(x, n.constant(0)), x, sineOf(n, quadrant(n, x), 0));
}
template <typename N> typename N::F cosF64(N &n, typename N::F x) {
  return sineOf(n, quadrant(n, x), 1);
}
template <typename N> typename N::F tanF64(N &n, typename N::F x) {
  Quadrant<N> q = quadrant(n, x);
  return n.select(n.equal(x, n.constant(0)), x, n.div(sineOf(n, q, 0), sineOf(n, q, 1)));
}

/// asin of |x| <= 1/2.
template <typename N> typename N::F asinCore(N &n, typename N::F x, typename N::F z) {
  typename N::F q =
      poly(n, z,
           {0x1.5555555555555p-3, 0x1.3333333333389p-4, 0x1.6db6db6dac0eap-5, 0x1.f1c71c7a5e151p-6,
            0x1.6e8ba121b9d5fp-6, 0x1.1c4efd20ebb99p-6, 0x1.c990a42b32b03p-7, 0x1.7b02ef007d23ep-7,
            0x1.3b462d121c5d2p-7, 0x1.31777489dfd29p-7, 0x1.8dcdf11997e0fp-9, 0x1.40c91fa8deb7ep-6,
            -0x1.3bd7e353ddbc2p-6, 0x1.e58a4f278e007p-6});
  return n.fma(n.mul(q, z), x, x);
}
template <typename N> typename N::F asinF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x);
  auto small = n.less(a, n.constant(0.5));
  F half = n.mul(n.sub(n.constant(1), a), n.constant(0.5));
  F root = n.sqrt(half);
  F core = asinCore(n, n.select(small, a, root), n.select(small, n.mul(a, a), half));
  F far = n.add(n.fma(core, n.constant(-2), n.constant(kHalfPi)), n.constant(kHalfPiLow));
  F r = n.select(small, core, far);
  return n.select(n.isNan(r), r, withSign(n, r, x));
}
template <typename N> typename N::F acosF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x);
  auto small = n.less(a, n.constant(0.5));
  F half = n.mul(n.sub(n.constant(1), a), n.constant(0.5));
  F core = asinCore(n, n.select(small, x, n.sqrt(half)), n.select(small, n.mul(x, x), half));
  F near = n.sub(n.constant(kHalfPi), n.sub(core, n.constant(kHalfPiLow)));
  F twice = n.add(core, core);
  F negative = n.sub(n.constant(2 * kHalfPi), n.sub(twice, n.constant(2 * kHalfPiLow)));
  return n.select(small, near, n.select(n.less(x, n.constant(0)), negative, twice));
}

/// Reduced to |t| <= tan(pi/8) by pi/4 and pi/2.
template <typename N> typename N::F atanF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), one = n.constant(1), zero = n.constant(0);
  auto far = n.less(n.constant(0x1.3504f333f9de6p+1), a),
       middle = n.less(n.constant(0x1.a827999fcef32p-2), a);
  F top = n.select(far, n.constant(-1), n.select(middle, n.sub(a, one), a));
  F bottom = n.select(far, a, n.select(middle, n.add(a, one), one));
  F t = n.div(top, bottom), z = n.mul(t, t);
  F q = poly(n, z,
             {-0x1.5555555555555p-2, 0x1.9999999999953p-3, -0x1.249249248d768p-3,
              0x1.c71c71c2fe5d9p-4, -0x1.745d165cb83aap-4, 0x1.3b1392b641b06p-4,
              -0x1.110e858a72e28p-4, 0x1.e199da4156fd9p-5, -0x1.ac78ec6b8cb98p-5,
              0x1.74d64aa665b0ap-5, -0x1.1b2058fb5da30p-5, 0x1.0aa87c56e3eb5p-6});
  F high = n.select(far, n.constant(kHalfPi), n.select(middle, n.constant(kHalfPi / 2), zero));
  F low = n.select(far, n.constant(kHalfPiLow), n.select(middle, n.constant(kHalfPiLow / 2), zero));
  F r = n.add(high, n.add(t, n.fma(n.mul(q, z), t, low)));
  return n.select(n.isNan(x), x, withSign(n, r, x));
}

template <typename N> typename N::F sinhF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), t = expm1F64(n, a), one = n.constant(1), half = n.constant(0.5);
  F near = n.mul(half, n.add(t, n.div(t, n.add(t, one))));
  F w = expF64(n, n.mul(half, a));
  F r = n.select(n.less(a, n.constant(40)), near, n.mul(n.mul(half, w), w));
  return n.select(n.isNan(x), x, withSign(n, r, x));
}
template <typename N> typename N::F coshF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), half = n.constant(0.5);
  F e = expF64(n, a), w = expF64(n, n.mul(half, a));
  return n.select(n.less(a, n.constant(40)), n.fma(half, e, n.div(half, e)),
                  n.mul(n.mul(half, w), w));
}
template <typename N> typename N::F asinhF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), one = n.constant(1);
  F z = n.mul(a, a);
  F near = log1pF64(n, n.add(a, n.div(z, n.add(one, n.sqrt(n.add(z, one))))));
  F far = n.add(logF64(n, a), n.constant(kLn2));
  F r = n.select(n.less(a, n.constant(0x1p28)), near, far);
  return n.select(n.isNan(x), x, withSign(n, r, x));
}
template <typename N> typename N::F acoshF64(N &n, typename N::F x) {
  using F = typename N::F;
  F t = n.sub(x, n.constant(1));
  F near = log1pF64(n, n.add(t, n.sqrt(n.fma(t, t, n.add(t, t)))));
  F far = n.add(logF64(n, x), n.constant(kLn2));
  F r = n.select(n.less(x, n.constant(0x1p28)), near, far);
  return n.select(n.less(x, n.constant(1)), nanOf(n), r);
}
template <typename N> typename N::F atanhF64(N &n, typename N::F x) {
  using F = typename N::F;
  F a = absolute(n, x), one = n.constant(1);
  F r = n.mul(n.constant(0.5), log1pF64(n, n.div(n.add(a, a), n.sub(one, a))));
  r = n.select(n.less(one, a), nanOf(n), r);
  return n.select(n.isNan(r), r, withSign(n, r, x));
}

/// e^(y log|x|) with the logarithm and the product as sums of two; then the sign and IEEE's special cases.
template <typename N> typename N::F powF64(N &n, typename N::F x, typename N::F y) {
  using F = typename N::F;
  F a = absolute(n, x), zero = n.constant(0), one = n.constant(1);
  auto finite = n.both(n.less(zero, a), n.less(a, infinity(n)));
  Sum<N> l = logSum(n, n.select(finite, a, one));
  l.high = n.select(finite, l.high, logEdges(n, a, one));
  F p = n.mul(l.high, y);
  F pLow = n.fma(l.high, y, n.sub(zero, p));
  pLow = n.fma(l.low, y, pLow);
  auto plain = n.both(finite, n.less(absolute(n, p), n.constant(800)));
  F r = expF64(n, p, n.select(plain, pLow, zero));
  F ay = absolute(n, y);
  F whole = n.trunc(y), half = n.mul(y, n.constant(0.5));
  auto integer = n.equal(whole, y);
  auto odd = n.both(n.both(integer, n.less(ay, n.constant(0x1p53))),
                    n.negate(n.equal(n.trunc(half), half)));
  auto invalid = n.both(n.both(n.less(x, zero), finite), n.negate(integer));
  r = n.select(invalid, nanOf(n), n.select(odd, withSign(n, r, x), r));
  r = n.select(n.both(n.equal(a, one), n.equal(ay, infinity(n))), one, r);
  r = n.select(n.either(n.isNan(x), n.isNan(y)), nanOf(n), r);
  return n.select(n.either(n.equal(x, one), n.equal(y, zero)), one, r);
}

} // namespace fusec::mathpoly

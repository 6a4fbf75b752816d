// The maths functions keep the errors that MathPoly.h states, and their values at the edges.
#include "Support/MathPoly.h"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cfenv>
#include <cmath>
#include <limits>

using namespace fusec;

namespace {

struct Function {
  MathFn fn;
  const char *name;
  long double (*exact)(long double);
  double f32Ulp, f64Ulp;
};

long double sigmoid(long double x) {
  long double e = expl(-fabsl(x));
  return (x < 0 ? e : 1) / (1 + e);
}

const Function kFunctions[] = {
    {MathFn::Exp, "exp", expl, 2, 2},
    {MathFn::Log, "log", logl, 2, 2},
    {MathFn::Log1p, "log1p", log1pl, 1, 4},
    {MathFn::Expm1, "expm1", expm1l, 1, 4},
    {MathFn::Tanh, "tanh", tanhl, 6.1, 4},
    {MathFn::Erf, "erf", erfl, 6.1, 4},
    {MathFn::Sigmoid, "sigmoid", sigmoid, 3, 4},
    {MathFn::Sin, "sin", sinl, 1, 4},
    {MathFn::Cos, "cos", cosl, 1, 4},
    {MathFn::Tan, "tan", tanl, 1, 4},
    {MathFn::Asin, "asin", asinl, 1, 4},
    {MathFn::Acos, "acos", acosl, 1, 4},
    {MathFn::Atan, "atan", atanl, 1, 4},
    {MathFn::Sinh, "sinh", sinhl, 1, 4},
    {MathFn::Cosh, "cosh", coshl, 1, 4},
    {MathFn::Asinh, "asinh", asinhl, 1, 4},
    {MathFn::Acosh, "acosh", acoshl, 1, 4},
    {MathFn::Atanh, "atanh", atanhl, 1, 4},
};

template <typename T> double errorInUlp(T got, long double exact) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : 1e30;
  T want = static_cast<T>(exact);
  if (std::isinf(want) || std::isinf(got))
    return want == got ? 0 : 1e30;
  T size = std::fabs(want), ulp = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
  return static_cast<double>(fabsl(static_cast<long double>(got) - exact) / ulp);
}

bool periodic(MathFn fn) { return fn == MathFn::Sin || fn == MathFn::Cos || fn == MathFn::Tan; }

bool sameNumber(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

} // namespace

TEST_CASE("errors of the f32 functions over all magnitudes", "[mathpoly]") {
  for (const Function &f : kFunctions) {
    double worst = 0;
    float at = 0;
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 997 * 11) {
      float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (periodic(f.fn) && !(std::fabs(x) < 0x1p51f))
        continue;
      double e = errorInUlp(evaluateMath(f.fn, x), f.exact(x));
      if (e > worst)
        worst = e, at = x;
    }
    INFO(f.name << " at " << at << ": " << worst << " ulp");
    CHECK(worst <= f.f32Ulp);
  }
}

TEST_CASE("errors of the f64 functions", "[mathpoly]") {
  for (const Function &f : kFunctions) {
    double worst = 0, at = 0;
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 60000; ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      double unit = static_cast<double>(static_cast<int64_t>(state)) / 9.3e18;
      double x = i % 3 == 0   ? std::bit_cast<double>(state)
                 : i % 3 == 1 ? unit * 30
                              : std::ldexp(unit, i % 21 - 10);
      if (periodic(f.fn) && !(std::fabs(x) < 0x1p51))
        continue;
      double e = errorInUlp(evaluateMath(f.fn, x), f.exact(x));
      if (e > worst)
        worst = e, at = x;
    }
    INFO(f.name << " at " << at << ": " << worst << " ulp");
    CHECK(worst <= f.f64Ulp);
  }
}

TEST_CASE("zeros, infinities, NaN and denormals", "[mathpoly]") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const Function &f : kFunctions)
    for (double x : {0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 1e-310, -1e-310}) {
      INFO(f.name << "(" << x << ")");
      double want = static_cast<double>(f.exact(x)), got = evaluateMath(f.fn, x);
      if (want == 0 || !std::isfinite(want))
        CHECK(sameNumber(got, want));
      else
        CHECK(errorInUlp(got, f.exact(x)) <= f.f64Ulp);
      float smallX = static_cast<float>(x), small = evaluateMath(f.fn, smallX);
      float smallWant = static_cast<float>(f.exact(smallX));
      if (smallWant == 0 || !std::isfinite(smallWant))
        CHECK(sameNumber(small, smallWant));
    }
}

TEST_CASE("tanh and erf reach 1 and stay within", "[mathpoly]") {
  for (MathFn fn : {MathFn::Tanh, MathFn::Erf}) {
    float most = 0;
    for (float x = 2; x < 12; x += 1.0f / 65536)
      most = std::max({most, evaluateMath(fn, x), -evaluateMath(fn, -x)});
    CHECK(most == 1);
    CHECK(evaluateMath(fn, 9.0f) == 1);
    CHECK(evaluateMath(fn, std::numeric_limits<float>::infinity()) == 1);
  }
}

// Underflow takes an x86 core over a hundred cycles, and masked softmaxes take e^x of -1e38 all the time.
TEST_CASE("results that vanish are not computed by underflow", "[mathpoly]") {
  for (double x : {-110.0, -1e4, -3.4028234e38, -std::numeric_limits<double>::infinity()}) {
    std::feclearexcept(FE_UNDERFLOW);
    CHECK(evaluateMath(MathFn::Exp, static_cast<float>(x)) == 0);
    CHECK(evaluateMath(MathFn::Sigmoid, static_cast<float>(x)) == 0);
    CHECK(!std::fetestexcept(FE_UNDERFLOW));
  }
  std::feclearexcept(FE_UNDERFLOW);
  CHECK(evaluateMath(MathFn::Exp, -1000.0) == 0);
  CHECK(!std::fetestexcept(FE_UNDERFLOW));
}

TEST_CASE("pow at every pair of edges, and its error", "[mathpoly]") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const double edges[] = {0.0,  -0.0, 1,    -1,  2,     -2,     3,      -3, 0.5,
                          -0.5, inf,  -inf, nan, 1e300, -1e300, 1e-310, 2.5};
  for (double x : edges)
    for (double y : edges) {
      INFO("pow(" << x << ", " << y << ")");
      double want = std::pow(x, y), got = evaluateMath(MathFn::Pow, x, y);
      if (want == 0 || !std::isfinite(want))
        CHECK(sameNumber(got, want));
      else
        CHECK(std::fabs(got - want) <= 1e-15 * std::fabs(want));
    }
  uint64_t state = 88172645463325252u;
  double worst = 0;
  for (int i = 0; i < 60000; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    double x = std::ldexp(1.0 + static_cast<double>(state >> 32) / 4294967296.0,
                          static_cast<int>(state % 64) - 32);
    double y = std::ldexp(static_cast<double>(static_cast<int64_t>(state * 5)) / 9.3e18, i % 12);
    worst = std::fmax(worst, errorInUlp(evaluateMath(MathFn::Pow, x, y), powl(x, y)));
  }
  CHECK(worst <= 2);
}

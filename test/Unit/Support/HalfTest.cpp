#include "Support/Half.h"

#include <catch2/catch_all.hpp>

#include <cmath>
#include <limits>

using namespace fusec;

namespace {

struct Format {
  int expBits, manBits;
  double (*widen)(uint16_t);
  uint16_t (*narrow)(double);
};
const Format formats[] = {{5, 10, halfToDouble, halfFromDouble},
                          {8, 7, bfloatToDouble, bfloatFromDouble}};

/// The value of a pattern by its definition.
double byDefinition(uint16_t bits, const Format &f) {
  int maxExp = (1 << f.expBits) - 1, bias = maxExp / 2;
  int exp = bits >> f.manBits & maxExp, man = bits & ((1 << f.manBits) - 1);
  double sign = bits >> 15 ? -1 : 1;
  if (exp == maxExp)
    return man ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return exp ? sign * std::ldexp((1 << f.manBits) + man, exp - bias - f.manBits)
             : sign * std::ldexp(man, 1 - bias - f.manBits);
}

} // namespace

TEST_CASE("every 16-bit pattern widens to its value and comes back") {
  for (const Format &f : formats)
    for (int bits = 0; bits < 0x10000; ++bits) {
      auto h = static_cast<uint16_t>(bits);
      double v = byDefinition(h, f), w = f.widen(h);
      if (std::isnan(v)) {
        REQUIRE(std::isnan(w));
        REQUIRE(std::isnan(f.widen(f.narrow(w))));
        continue;
      }
      REQUIRE(std::bit_cast<uint64_t>(v) == std::bit_cast<uint64_t>(w));
      REQUIRE(f.narrow(w) == h);
    }
}

TEST_CASE("narrowing rounds to nearest even between all neighbours") {
  for (const Format &f : formats) {
    auto infinity = static_cast<uint16_t>(((1 << f.expBits) - 1) << f.manBits);
    for (uint16_t low = 0; low + 1 < infinity; ++low) {
      double a = f.widen(low), b = f.widen(low + 1), middle = (a + b) / 2;
      uint16_t even = low & 1 ? low + 1 : low;
      REQUIRE(f.narrow(middle) == even);
      REQUIRE(f.narrow(std::nextafter(middle, 1e300)) == low + 1);
      REQUIRE(f.narrow(std::nextafter(middle, -1e300)) == low);
      REQUIRE(f.narrow(-middle) == (even | 0x8000));
    }
    double largest = f.widen(infinity - 1), step = largest - f.widen(infinity - 2);
    CHECK(f.narrow(largest + step / 2) == infinity);
    CHECK(f.narrow(std::nextafter(largest + step / 2, 0)) == infinity - 1);
    CHECK(f.narrow(1e300) == infinity);
    CHECK(f.narrow(5e-324) == 0);
    CHECK(f.narrow(-5e-324) == 0x8000);
  }
}

TEST_CASE("doubles round once") {
  // 1 + 2^-11 + 2^-40 is above the middle of two halves but rounds to that middle in binary32.
  double v = 1 + std::ldexp(1, -11) + std::ldexp(1, -40);
  CHECK(halfFromDouble(v) == 0x3c01);
  CHECK(halfFromFloat(static_cast<float>(v)) == 0x3c00);
}

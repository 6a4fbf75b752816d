#pragma once
#include <bit>
#include <cstdint>

namespace fusec {

// Exact conversions between the 16-bit float formats and binary32/binary64. To 16 bits they round to nearest
// even, once, from the given type (double -> half never goes through float). Overflow gives infinity, NaN
// keeps its sign and becomes quiet. Nothing here depends on the rounding mode or the locale.

namespace detail {

/// Rounds the finite or infinite double with bits `d` to a format of `expBits` and `manBits` bits.
constexpr uint16_t narrowDouble(uint64_t d, int expBits, int manBits) {
  const uint16_t sign = static_cast<uint16_t>(d >> 63 << 15);
  const int maxExp = (1 << expBits) - 1, bias = maxExp >> 1;
  const uint16_t inf = static_cast<uint16_t>(maxExp << manBits);
  int exp = static_cast<int>(d >> 52 & 0x7ff);
  uint64_t man = d & ((uint64_t(1) << 52) - 1);
  if (exp == 0x7ff)
    return sign | inf |
           (man ? 1u << (manBits - 1) | static_cast<uint16_t>(man >> (52 - manBits)) : 0);
  if (exp == 0)
    return sign; // below half of the smallest subnormal of either format
  man |= uint64_t(1) << 52;
  int e = exp - 1023 + bias; // exponent field in the result if normal
  int drop = 52 - manBits;   // low bits that do not fit
  if (e <= 0)
    drop += 1 - e;
  if (drop > 63)
    return sign;
  uint64_t kept = man >> drop, rest = man & ((uint64_t(1) << drop) - 1),
           half = uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // A carry out of the mantissa runs into the exponent field, which is what rounding up means.
  uint64_t bits = e <= 0 ? kept : kept + (static_cast<uint64_t>(e - 1) << manBits);
  return sign | (bits >= inf ? inf : static_cast<uint16_t>(bits));
}

constexpr double widenToDouble(uint16_t h, int expBits, int manBits) {
  const int maxExp = (1 << expBits) - 1, bias = maxExp >> 1;
  const uint64_t sign = static_cast<uint64_t>(h >> 15) << 63;
  int exp = h >> manBits & maxExp;
  uint64_t man = h & ((1u << manBits) - 1);
  if (exp == maxExp)
    return std::bit_cast<double>(sign | uint64_t(0x7ff) << 52 | man << (52 - manBits));
  if (exp == 0) {
    // man * 2^(1 - bias - manBits), exact in double
    double scale = std::bit_cast<double>(static_cast<uint64_t>(1023 + 1 - bias - manBits) << 52);
    double v = static_cast<double>(man) * scale;
    return sign ? -v : v;
  }
  return std::bit_cast<double>(sign | static_cast<uint64_t>(exp - bias + 1023) << 52 |
                               man << (52 - manBits));
}

} // namespace detail

constexpr uint16_t halfFromDouble(double v) {
  return detail::narrowDouble(std::bit_cast<uint64_t>(v), 5, 10);
}
constexpr uint16_t halfFromFloat(float v) { return halfFromDouble(v); } // widening is exact
constexpr double halfToDouble(uint16_t h) { return detail::widenToDouble(h, 5, 10); }
constexpr float halfToFloat(uint16_t h) { return static_cast<float>(halfToDouble(h)); }

constexpr uint16_t bfloatFromDouble(double v) {
  return detail::narrowDouble(std::bit_cast<uint64_t>(v), 8, 7);
}
constexpr uint16_t bfloatFromFloat(float v) { return bfloatFromDouble(v); }
constexpr float bfloatToFloat(uint16_t b) { return std::bit_cast<float>(uint32_t(b) << 16); }
constexpr double bfloatToDouble(uint16_t b) { return bfloatToFloat(b); }

} // namespace fusec

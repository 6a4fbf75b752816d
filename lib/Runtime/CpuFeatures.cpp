#include "Runtime/CpuFeatures.h"

#include <cpuid.h>
#include <cstdint>

namespace fusec::rt {

namespace {

bool has(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

uint64_t enabledStates() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// The levels are those of the x86-64 psABI, section 3.1.1.
int detect() {
  uint32_t a, b, c, d, b7 = 0, cExt = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return 1;
  uint32_t x, y, z;
  __get_cpuid_count(7, 0, &x, &b7, &y, &z);
  __get_cpuid(0x80000001, &x, &y, &cExt, &z);

  constexpr uint32_t v2 =
      bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT;
  if (!has(c, v2) || !has(cExt, bit_LAHF_LM))
    return 1;
  constexpr uint32_t v3 = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C;
  if (!has(c, v3) || !has(b7, bit_BMI | bit_AVX2 | bit_BMI2) || !has(cExt, bit_ABM))
    return 2;
  constexpr uint64_t ymm = 0x6, zmm = 0xe6;
  const uint64_t states = enabledStates();
  if ((states & ymm) != ymm)
    return 2;
  constexpr uint32_t v4 = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
  return has(b7, v4) && (states & zmm) == zmm ? 4 : 3;
}

} // namespace

int cpuLevel() {
  static const int level = detect();
  return level;
}

int levelOfTarget(std::string_view target) {
  constexpr std::string_view prefix = "x86-64-v";
  if (target.size() != prefix.size() + 1 || target.substr(0, prefix.size()) != prefix)
    return 0;
  const char c = target.back();
  return c >= '1' && c <= '4' ? c - '0' : 0;
}

} // namespace fusec::rt

#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusec {

/// 128-bit xxHash (XXH3), for pattern signatures and constant identity. Not cryptographic: bundle digests
/// are BLAKE2b.
struct Hash128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128 &) const = default;
  std::string hex() const; // 32 lower-case digits
  static bool fromHex(std::string_view text, Hash128 &out);
};
Hash128 hash128(const void *data, size_t sizeBytes, uint64_t seed = 0);
inline Hash128 hash128(std::string_view s) { return hash128(s.data(), s.size()); }

} // namespace fusec

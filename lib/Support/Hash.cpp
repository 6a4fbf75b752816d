#include "Support/Pieces.h"

// Header-only use: no symbol of libxxhash is needed at link time.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fusec {

Hash128 hash128(const void *data, size_t sizeBytes, uint64_t seed) {
  XXH128_hash_t h = XXH3_128bits_withSeed(data, sizeBytes, seed);
  return {h.high64, h.low64};
}

static XXH3_state_t *stateOf(unsigned char *bytes) {
  static_assert(sizeof(XXH3_state_t) <= sizeof(PiecewiseHash) && alignof(XXH3_state_t) <= 64);
  return reinterpret_cast<XXH3_state_t *>(bytes);
}

PiecewiseHash::PiecewiseHash() : state() { XXH3_128bits_reset(stateOf(state.data())); }

void PiecewiseHash::add(const uint8_t *bytes, size_t sizeBytes) {
  XXH3_128bits_update(stateOf(state.data()), bytes, sizeBytes);
}

Hash128 PiecewiseHash::value() const {
  PiecewiseHash copy = *this;
  XXH128_hash_t h = XXH3_128bits_digest(stateOf(copy.state.data()));
  return {h.high64, h.low64};
}

std::string Hash128::hex() const {
  static const char digits[] = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[15 - i] = digits[(high >> (4 * i)) & 15];
    out[31 - i] = digits[(low >> (4 * i)) & 15];
  }
  return out;
}

bool Hash128::fromHex(std::string_view text, Hash128 &out) {
  if (text.size() != 32)
    return false;
  uint64_t parts[2] = {0, 0};
  for (size_t i = 0; i < 32; ++i) {
    char c = text[i];
    uint64_t digit;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'a' && c <= 'f')
      digit = c - 'a' + 10;
    else
      return false;
    parts[i / 16] = parts[i / 16] << 4 | digit;
  }
  out = {parts[0], parts[1]};
  return true;
}

} // namespace fusec

#include "Bundle/Digest.h"

#include "fusec/bundle_format.h"

#include <sodium.h>

#include <algorithm>

namespace fusec::bundle {

namespace {

crypto_generichash_blake2b_state *stateOf(unsigned char *bytes) {
  static_assert(sizeof(crypto_generichash_blake2b_state) <= 384);
  return reinterpret_cast<crypto_generichash_blake2b_state *>(bytes);
}

// Selects the SIMD form of BLAKE2b; opens no file on Linux (getrandom).
void initSodium() {
  static const int ready = sodium_init();
  (void)ready;
}

} // namespace

Digest digestOf(const void *data, size_t sizeBytes) {
  initSodium();
  Digest d;
  crypto_generichash_blake2b(d.data(), d.size(), static_cast<const unsigned char *>(data),
                             sizeBytes, nullptr, 0);
  return d;
}

ChunkDigester::ChunkDigester() {
  initSodium();
  crypto_generichash_blake2b_init(stateOf(state.data()), nullptr, 0, FUSEC_DIGEST_BYTES);
}

void ChunkDigester::add(const void *data, size_t sizeBytes) {
  const auto *p = static_cast<const unsigned char *>(data);
  while (sizeBytes > 0) {
    if (inChunk == FUSEC_WEIGHT_CHUNK)
      closeChunk();
    const size_t n = std::min<size_t>(sizeBytes, FUSEC_WEIGHT_CHUNK - inChunk);
    crypto_generichash_blake2b_update(stateOf(state.data()), p, n);
    inChunk += n;
    p += n;
    sizeBytes -= n;
  }
}

void ChunkDigester::closeChunk() {
  unsigned char d[FUSEC_DIGEST_BYTES];
  crypto_generichash_blake2b_final(stateOf(state.data()), d, sizeof d);
  digests.insert(digests.end(), d, d + sizeof d);
  crypto_generichash_blake2b_init(stateOf(state.data()), nullptr, 0, FUSEC_DIGEST_BYTES);
  inChunk = 0;
}

void ChunkDigester::goBack(const Mark &to) {
  state = to.state;
  inChunk = to.inChunk;
  digests.resize(to.digestBytes);
}

std::vector<uint8_t> ChunkDigester::finish() {
  if (inChunk > 0)
    closeChunk();
  return std::move(digests);
}

} // namespace fusec::bundle

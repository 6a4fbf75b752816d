#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusec::bundle {

using Digest = std::array<uint8_t, 32>;

/// BLAKE2b with 32 bytes of output and no key.
Digest digestOf(const void *data, size_t sizeBytes);

/// Digests data that comes in pieces: one digest for every FUSEC_WEIGHT_CHUNK bytes.
class ChunkDigester {
public:
  ChunkDigester();
  void add(const void *data, size_t sizeBytes);
  /// A state to go back to, which takes back all data that is added after it.
  struct Mark {
    std::array<unsigned char, 384> state;
    size_t inChunk, digestBytes;
  };
  Mark mark() const { return {state, inChunk, digests.size()}; }
  void goBack(const Mark &to);
  /// Digests of all chunks, 32 bytes each. Call once, at the end.
  std::vector<uint8_t> finish();

private:
  void closeChunk();
  alignas(64) std::array<unsigned char, 384> state; // crypto_generichash_blake2b_state
  size_t inChunk = 0;
  std::vector<uint8_t> digests;
};

} // namespace fusec::bundle

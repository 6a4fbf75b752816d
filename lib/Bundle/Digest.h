#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusec::bundle {

using Digest = std::array<uint8_t, 32>;

/// BLAKE2b with 32 bytes of output and no key.
Digest digestOf(const void *data, size_t sizeBytes);

/// The same for data that comes in pieces, and one digest for every FUSEC_WEIGHT_CHUNK bytes of it.
class ChunkDigester {
public:
  ChunkDigester();
  void add(const void *data, size_t sizeBytes);
  /// All that has been added so far; what comes later can be taken back.
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

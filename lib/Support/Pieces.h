#pragma once
#include "Support/Hash.h"
#include "Support/Result.h"

#include <array>
#include <functional>

namespace fusec {

/// Takes data that comes in pieces, in order.
using TakeBytes = std::function<Status(const uint8_t *bytes, size_t sizeBytes)>;

/// hash128 of data that comes in pieces.
class PiecewiseHash {
public:
  PiecewiseHash();
  void add(const uint8_t *bytes, size_t sizeBytes);
  Hash128 value() const;

private:
  alignas(64) std::array<unsigned char, 640> state; // XXH3_state_t
};

} // namespace fusec

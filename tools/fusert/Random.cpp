#include "Session.h"
#include "Support/Half.h"

#include <cstring>

namespace fusert {

namespace {

/// splitmix64: the same numbers on every machine.
struct Generator {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Sum of four 16-bit uniform numbers, scaled to mean 0 and variance 1; no library function involved.
  double normal() {
    const uint64_t r = next();
    const double sum =
        double(r & 0xffff) + double(r >> 16 & 0xffff) + double(r >> 32 & 0xffff) + double(r >> 48);
    return (sum / 65536.0 - 2.0) * 1.7320508075688772;
  }
};

} // namespace

void fillRandom(HostTensor &t, uint64_t seed) {
  using fusec::DType;
  Generator g{seed};
  const auto size = static_cast<size_t>(fusec::sizeInBytes(t.type));
  for (int64_t i = 0, n = t.numElements(); i < n; ++i) {
    uint64_t bits = 0;
    if (t.type == DType::F32) {
      const auto v = static_cast<float>(g.normal());
      std::memcpy(&bits, &v, sizeof v);
    } else if (t.type == DType::F64) {
      const double v = g.normal();
      std::memcpy(&bits, &v, sizeof v);
    } else if (t.type == DType::F16) {
      bits = fusec::halfFromDouble(g.normal());
    } else if (t.type == DType::BF16) {
      bits = fusec::bfloatFromDouble(g.normal());
    } else {
      bits = g.next() >> 63;
    }
    std::memcpy(t.bytes.data() + static_cast<size_t>(i) * size, &bits, size);
  }
}

} // namespace fusert

#pragma once
#include <immintrin.h>

namespace fusec::rt {

/// The floating point environment that the kernel ABI promises, for as long as the object lives.
class FpEnvironment {
public:
  FpEnvironment() : saved(_mm_getcsr()) {
    if ((saved & kControl) != kDefault)
      _mm_setcsr(kDefault);
  }
  ~FpEnvironment() { _mm_setcsr(saved); }
  FpEnvironment(const FpEnvironment &) = delete;
  FpEnvironment &operator=(const FpEnvironment &) = delete;

private:
  /// Round to nearest, exceptions masked, no flush to zero.
  static constexpr unsigned kDefault = 0x1f80;
  static constexpr unsigned kControl = 0xffc0; // all bits but the sticky flags
  unsigned saved;
};

} // namespace fusec::rt

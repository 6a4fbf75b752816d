#pragma once
#include <cstdint>
#include <utility>

namespace fusec::rt {

/// splitmix64: orders drawn from a seed, the same on every machine.
class SimRandom {
public:
  explicit SimRandom(uint64_t seed = 0, uint64_t a = 0, uint64_t b = 0) : state(seed) {
    state = next() ^ a;
    state = next() ^ b;
  }
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 .. n-1
  uint64_t below(uint64_t n) { return next() % n; }
  template <typename List> void shuffle(List &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(i)]);
  }

private:
  uint64_t state;
};

} // namespace fusec::rt

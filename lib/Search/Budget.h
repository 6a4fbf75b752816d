#pragma once
#include <cassert>
#include <cstdint>

namespace fusec::search {

/// How many candidates a search may evaluate, or how much work they are. It counts and looks at no clock, so that
/// results repeat.
class Budget {
public:
  explicit Budget(int64_t most) : most(most) { assert(most >= 0); }

  /// Takes one evaluation; false where none is left.
  bool take() {
    if (taken == most)
      return false;
    ++taken;
    return true;
  }
  /// Takes a candidate of so much work, the last one in full; false where nothing is left.
  bool takeWork(int64_t work) {
    assert(work >= 0);
    if (taken >= most)
      return false;
    taken += work;
    return true;
  }
  bool isSpent() const { return taken >= most; }
  int64_t spent() const { return taken; }

private:
  int64_t most, taken = 0;
};

} // namespace fusec::search

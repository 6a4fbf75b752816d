#pragma once
#include <cassert>
#include <cstdint>

namespace fusec::search {

/// How many candidates a search may evaluate. It counts and looks at no clock, so that results repeat.
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
  int64_t spent() const { return taken; }

private:
  int64_t most, taken = 0;
};

} // namespace fusec::search

#include "Minimise.h"

#include <algorithm>

namespace fusec::reduce {

Choice minimise(size_t count, const std::function<bool(const Choice &)> &isInteresting) {
  Choice kept(count, true);
  std::vector<size_t> left;
  auto refresh = [&] {
    left.clear();
    for (size_t i = 0; i < count; ++i)
      if (kept[i])
        left.push_back(i);
  };
  refresh();
  for (size_t run = std::max<size_t>(count / 2, 1); !left.empty();) {
    bool shrunk = false;
    // From the end: later parts need earlier ones more often than the other way round.
    for (size_t end = left.size(); end > 0;) {
      const size_t begin = end > run ? end - run : 0;
      Choice fewer = kept;
      for (size_t i = begin; i < end; ++i)
        fewer[left[i]] = false;
      if (isInteresting(fewer)) {
        kept = std::move(fewer);
        shrunk = true;
      }
      end = begin;
    }
    refresh();
    if (run == 1 && !shrunk)
      break;
    run = std::min(std::max<size_t>(run / 2, 1), std::max<size_t>(left.size() / 2, 1));
  }
  return kept;
}

} // namespace fusec::reduce

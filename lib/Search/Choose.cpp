#include "Search/Choose.h"

#include <cassert>

namespace fusec::search {

size_t chooseLowest(size_t count, const std::function<double(size_t)> &score,
                    const std::function<std::string(size_t)> &name, Log &log) {
  assert(count > 0 && "a choice needs a candidate");
  size_t best = 0, first = log.size();
  for (size_t i = 0; i < count; ++i) {
    log.push_back({name(i), score(i)});
    if (log[first + i].score < log[first + best].score)
      best = i;
  }
  log[first + best].chosen = true;
  return best;
}

} // namespace fusec::search

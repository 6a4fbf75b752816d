#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fusec::search {

/// One candidate that a search looked at. Lower scores are better.
struct Evaluation {
  std::string name;
  double score;
  bool chosen = false;
};
using Log = std::vector<Evaluation>;

/// Index of the lowest score among `count` candidates (the first one on a tie), each evaluated once, in order; all
/// evaluations are appended to `log`. `count` must be positive.
size_t chooseLowest(size_t count, const std::function<double(size_t)> &score,
                    const std::function<std::string(size_t)> &name, Log &log);

} // namespace fusec::search

#include "Tiling/search/SizeChoice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

/// How much slower than the fastest: the worst size, and a sum over all that large ratios dominate.
struct Loss {
  double worst = 1, sum = 0;
  void add(double ratio) {
    worst = std::max(worst, ratio);
    sum += std::log(ratio) * std::log(ratio);
  }
  void add(const Loss &other) {
    worst = std::max(worst, other.worst);
    sum += other.sum;
  }
  bool operator<(const Loss &other) const {
    const bool isFine = worst <= kMostSlower, otherIsFine = other.worst <= kMostSlower;
    if (isFine != otherIsFine)
      return isFine;
    return sum < other.sum;
  }
};

class Chooser {
public:
  explicit Chooser(const SizeTable &table) : table(table) {
    for (size_t at = 0; at < table.features.size(); ++at) {
      fastest.push_back(std::numeric_limits<double>::infinity());
      for (const std::vector<double> &of : table.seconds)
        fastest.back() = std::min(fastest.back(), of[at]);
    }
  }

  double ratio(size_t schedule, size_t at) const {
    return table.seconds[schedule][at] / fastest[at];
  }

  /// The loss of the fastest among the schedules at each size.
  Loss lossOfBest(const std::vector<size_t> &schedules) const {
    Loss loss;
    for (size_t at = 0; at < fastest.size(); ++at) {
      double best = std::numeric_limits<double>::infinity();
      for (size_t s : schedules)
        best = std::min(best, ratio(s, at));
      loss.add(best);
    }
    return loss;
  }

  /// The schedule that does best at these sizes, and its loss.
  std::pair<size_t, Loss> bestFor(const std::vector<size_t> &sizes,
                                  const std::vector<size_t> &schedules) const {
    std::optional<std::pair<size_t, Loss>> best;
    for (size_t s : schedules) {
      Loss loss;
      for (size_t at : sizes)
        loss.add(ratio(s, at));
      if (!best || loss < best->second)
        best = {s, loss};
    }
    return *best;
  }

  const SizeTable &table;
  std::vector<double> fastest;
};

/// Half way between two sizes by their ratio, above the lower one.
int64_t cutBetween(int64_t low, int64_t high) {
  const auto middle = static_cast<int64_t>(std::llround(std::sqrt(double(low) * double(high))));
  return std::clamp(middle, low + 1, high);
}

/// Finds trees by trying all cuts, those of halves too; a half that comes again is answered from memory.
class TreeGrower {
public:
  TreeGrower(const Chooser &chooser, const std::vector<size_t> &schedules)
      : chooser(chooser), schedules(schedules) {}

  /// The fewest leaves that are enough.
  SizeTree run() {
    std::vector<size_t> all;
    for (size_t at = 0; at < chooser.fastest.size(); ++at)
      all.push_back(at);
    const Grown *best = nullptr;
    for (int leaves = 1; leaves <= kMostLeaves; ++leaves) {
      const Grown &grown = bestTree(all, leaves);
      if (!best || grown.loss < best->loss)
        best = &grown;
      if (best->loss.worst <= kMostSlower)
        break;
    }
    return best->tree;
  }

private:
  struct Grown {
    SizeTree tree;
    Loss loss;
  };

  /// With so many leaves at most.
  const Grown &bestTree(const std::vector<size_t> &sizes, int leaves) {
    const auto key = std::pair(sizes, leaves);
    if (const auto at = known.find(key); at != known.end())
      return at->second;
    const auto [schedule, loss] = chooser.bestFor(sizes, schedules);
    Grown best{SizeTree{static_cast<int>(schedule)}, loss};
    if (leaves > 1 && loss.worst > kMostSlower)
      for (size_t f = 0; f < chooser.table.features[0].size(); ++f)
        tryCuts(f, sizes, leaves, best);
    return known.emplace(key, std::move(best)).first->second;
  }

  void tryCuts(size_t feature, const std::vector<size_t> &sizes, int leaves, Grown &best) {
    std::set<int64_t> values;
    for (size_t at : sizes)
      values.insert(chooser.table.features[at][feature]);
    for (auto high = values.begin(); high != values.end(); ++high) {
      if (high == values.begin())
        continue;
      const int64_t threshold = cutBetween(*std::prev(high), *high);
      std::vector<size_t> below, atLeast;
      for (size_t at : sizes)
        (chooser.table.features[at][feature] >= threshold ? atLeast : below).push_back(at);
      for (int ofBelow = 1; ofBelow < leaves; ++ofBelow) {
        const Grown &low = bestTree(below, ofBelow), &top = bestTree(atLeast, leaves - ofBelow);
        Loss loss = low.loss;
        loss.add(top.loss);
        if (!(loss < best.loss))
          continue;
        best.loss = loss;
        best.tree = SizeTree{-1, feature, threshold, {low.tree, top.tree}};
      }
    }
  }

  const Chooser &chooser;
  const std::vector<size_t> &schedules;
  std::map<std::pair<std::vector<size_t>, int>, Grown> known;
};

} // namespace

std::vector<size_t> fewestSchedules(const SizeTable &table) {
  const Chooser chooser(table);
  std::vector<size_t> best;
  Loss least;
  for (size_t count = 1; count <= std::min(kMostSchedules, table.seconds.size()); ++count) {
    bool isFirst = true;
    std::vector<bool> taken(table.seconds.size(), false);
    std::fill_n(taken.begin(), count, true);
    do {
      std::vector<size_t> schedules;
      for (size_t s = 0; s < taken.size(); ++s)
        if (taken[s])
          schedules.push_back(s);
      if (const Loss loss = chooser.lossOfBest(schedules); isFirst || loss < least) {
        least = loss;
        best = std::move(schedules);
        isFirst = false;
      }
    } while (std::prev_permutation(taken.begin(), taken.end()));
    if (least.worst <= kMostSlower)
      break;
  }
  return best;
}

SizeTree sizeTree(const SizeTable &table, const std::vector<size_t> &schedules) {
  const Chooser chooser(table);
  return TreeGrower(chooser, schedules).run();
}

} // namespace fusec::tiling

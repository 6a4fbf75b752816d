#include "Tiling/search/SizeChoice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace fusec::tiling {

namespace {

/// What is lost by less at each size than this share of all that runs is not worth a cut.
constexpr double kLeastLoss = 1.001;

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
  bool operator<(const Loss &other) const { return sum < other.sum; }
};

class Chooser {
public:
  explicit Chooser(const SizeTable &table) : table(table), ratios(table.seconds.size()) {
    for (size_t s = 0; s < table.seconds.size(); ++s)
      for (size_t at = 0; at < table.features.size(); ++at)
        ratios[s].push_back(table.slowdown(s, at));
  }

  size_t sizes() const { return table.features.size(); }

  /// The loss of the fastest among the schedules at each size.
  Loss lossOfBest(const std::vector<size_t> &schedules) const {
    Loss loss;
    for (size_t at = 0; at < sizes(); ++at) {
      double best = std::numeric_limits<double>::infinity();
      for (size_t s : schedules)
        best = std::min(best, ratios[s][at]);
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
        loss.add(ratios[s][at]);
      if (!best || loss < best->second)
        best = {s, loss};
    }
    return *best;
  }

  const SizeTable &table;
  std::vector<std::vector<double>> ratios; // of each schedule, at each size
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

  SizeTree run(int leaves) {
    std::vector<size_t> all;
    for (size_t at = 0; at < chooser.sizes(); ++at)
      all.push_back(at);
    return bestTree(all, leaves).tree;
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
    if (leaves > 1 && loss.worst > kLeastLoss)
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

/// Takes so many schedules, the best one of which at each size is as near to the fastest as can be.
std::vector<size_t> nearestSchedules(const Chooser &chooser, size_t count) {
  std::vector<size_t> best;
  Loss least;
  std::vector<bool> taken(chooser.table.seconds.size(), false);
  std::fill_n(taken.begin(), std::min(count, taken.size()), true);
  do {
    std::vector<size_t> schedules;
    for (size_t s = 0; s < taken.size(); ++s)
      if (taken[s])
        schedules.push_back(s);
    if (const Loss loss = chooser.lossOfBest(schedules); best.empty() || loss < least) {
      least = loss;
      best = std::move(schedules);
    }
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return best;
}

} // namespace

double SizeTable::fastest(size_t at) const {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<double> &of : seconds)
    least = std::min(least, of[at]);
  return least;
}

double SizeTable::slowdown(size_t schedule, size_t at) const {
  const double beside = others.empty() ? 0 : others[at];
  return (seconds[schedule][at] + beside) / (fastest(at) + beside);
}

std::vector<size_t> SizeTree::schedules() const {
  if (isLeaf())
    return {static_cast<size_t>(schedule)};
  std::vector<size_t> all = children[0].schedules(), more = children[1].schedules();
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

size_t SizeTree::scheduleAt(const std::vector<int64_t> &features) const {
  if (isLeaf())
    return static_cast<size_t>(schedule);
  return children[features[feature] >= threshold ? 1 : 0].scheduleAt(features);
}

SizeTree sizeTree(const SizeTable &table, int leaves) {
  const Chooser chooser(table);
  const std::vector<size_t> schedules = nearestSchedules(chooser, static_cast<size_t>(leaves));
  return TreeGrower(chooser, schedules).run(leaves);
}

} // namespace fusec::tiling

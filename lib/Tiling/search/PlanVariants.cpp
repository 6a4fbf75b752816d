// Chooses which kernels of a plan get several schedules. Each begins with the one that does best over all sizes. Then
// the size is looked at that loses most by that, and the kernel that loses most there gets one more, until little is
// lost:
//
//   seconds at n = 1 and 512, with the one schedule and with the fastest, in us:
//     products   40 (4)   300 (300)     # ten times as slow at n = 1: a second schedule
//     norms      2.2 (2)  30 (20)       # 2 % of all at n = 512: one schedule is enough
//     softmax    3 (3)    200 (190)
//
// What a kernel loses is weighed by all that runs beside it at the same sizes, and so are its own sizes against each
// other: a leaf for long rows does not pay for a kernel that takes most of the time at short ones.
#include "Tiling/search/PlanVariants.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace fusec {

using namespace tiling;

namespace {

/// Patterns that run one behind the other: those of one plan, which are tuned for the same sizes.
class PlanChoice {
public:
  explicit PlanChoice(std::vector<PlannedPattern *> of)
      : patterns(std::move(of)), trees(patterns.size()), leaves(patterns.size(), 0),
        lost(patterns.size()) {
    const size_t sizes = patterns.front()->schedules.sizes.size();
    for (size_t at = 0; at < sizes; ++at) {
      totals.push_back(0);
      for (const PlannedPattern *p : patterns)
        totals.back() += p->launches * p->schedules.table.fastest(p->schedules.rows[at]);
    }
    for (PlannedPattern *p : patterns)
      setOthers(*p);
  }

  std::vector<SizeTree> run() {
    for (size_t p = 0; p < patterns.size(); ++p)
      grow(p);
    while (const auto p = nextToGrow())
      grow(*p);
    return std::move(trees);
  }

private:
  /// A pattern's sizes that are alike to it are not so to others: of all the least counts.
  void setOthers(PlannedPattern &p) const {
    SizeTable &table = p.schedules.table;
    table.others.assign(table.features.size(), std::numeric_limits<double>::infinity());
    for (size_t at = 0; at < totals.size(); ++at) {
      double &others = table.others[p.schedules.rows[at]];
      others = std::min(others, totals[at] / p.launches - table.fastest(p.schedules.rows[at]));
    }
  }

  void grow(size_t p) {
    const SizedSchedules &schedules = patterns[p]->schedules;
    trees[p] = sizeTree(schedules.table, ++leaves[p]);
    lost[p].clear();
    for (size_t row : schedules.rows) {
      const size_t chosen = trees[p].scheduleAt(schedules.table.features[row]);
      lost[p].push_back(patterns[p]->launches *
                        (schedules.table.seconds[chosen][row] - schedules.table.fastest(row)));
    }
  }

  /// The pattern that loses most at the size that loses most of those where more schedules may help; none if that is
  /// little.
  std::optional<size_t> nextToGrow() const {
    std::optional<size_t> next;
    double share = kMostSlower - 1;
    for (size_t at = 0; at < totals.size(); ++at) {
      double sum = 0;
      std::optional<size_t> most;
      for (size_t p = 0; p < patterns.size(); ++p) {
        sum += lost[p][at];
        if (leaves[p] < kMostLeaves && lost[p][at] > (most ? lost[*most][at] : 0))
          most = p;
      }
      if (most && sum > share * totals[at]) {
        share = sum / totals[at];
        next = most;
      }
    }
    return next;
  }

  std::vector<PlannedPattern *> patterns;
  std::vector<SizeTree> trees;
  std::vector<int> leaves;
  std::vector<std::vector<double>> lost; // by each pattern's launches, at each size
  std::vector<double> totals;            // of all launches with the fastest schedules, at each size
};

} // namespace

std::vector<std::vector<ScheduleVariant>> planVariants(std::vector<PlannedPattern> patterns) {
  std::map<std::vector<std::vector<int64_t>>, std::vector<size_t>> plans; // by their sizes
  for (size_t p = 0; p < patterns.size(); ++p)
    plans[patterns[p].schedules.sizes].push_back(p);
  std::vector<std::vector<ScheduleVariant>> chosen(patterns.size());
  for (const auto &[sizes, members] : plans) {
    if (sizes.empty()) {
      for (size_t p : members)
        chosen[p] = std::move(patterns[p].schedules.found.front());
      continue;
    }
    std::vector<PlannedPattern *> of;
    for (size_t p : members)
      of.push_back(&patterns[p]);
    const std::vector<SizeTree> trees = PlanChoice(of).run();
    for (size_t m = 0; m < members.size(); ++m)
      chosen[members[m]] = variantsOf(*of[m]->program, std::move(of[m]->schedules), trees[m]);
  }
  return chosen;
}

} // namespace fusec

#pragma once
#include "Fusion/PackOrder.h"
#include "Fusion/PatternKeys.h"
#include "Fusion/Plan.h"
#include "Search/Budget.h"

#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

namespace fusec {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The vertices of a launch: one set per phase.
using Phases = VertexSets;

/// Seconds of kernels and launches by the accurate model, with a cache and a budget.
class AccurateCost {
public:
  /// `evaluations`: kernels that it may price. Each vertex alone is one of them, and must be asked for first.
  /// `weighed`: equations that all priced kernels of several vertices may have together.
  AccurateCost(const FusionContext &context, const SearchGraph &region, const Target &target,
               const ScheduleOracle &oracle, int64_t evaluations, int64_t weighed)
      : context(context), region(region), target(target), oracle(oracle), order(context, region),
        keys(context.program, context.uses), budget(evaluations), equations(weighed) {}

  /// Seconds of the vertices as one kernel. Infinite if no schedule runs them as one kernel, if the best one moves more
  /// bytes than one kernel per vertex would (fewer launches are not bought with bytes), and if the budget is spent.
  Result<double> kernelSeconds(const std::vector<int> &vertices);
  /// Seconds of one kernel with these phases, each with the schedule that it has alone. All phases have the same number
  /// of units a block.
  Result<double> seconds(const Phases &phases);
  /// Bytes of device memory that one kernel of the vertices moves.
  Result<double> bytes(const std::vector<int> &vertices);
  /// True if both compute the same, up to names: one kernel's code serves both.
  Result<bool> isEqual(const std::vector<int> &a, const std::vector<int> &b);
  /// Bytes that the vertices move as one kernel and as one kernel each, if the former is more.
  Result<std::optional<std::pair<double, double>>> movesMore(const std::vector<int> &vertices);
  /// Orders plans of equal seconds by what their launches compute, so that the order of a model's nodes does not
  /// matter.
  uint64_t tieOf(const std::vector<Phases> &launches);
  double launchSeconds() const { return target.launchSec; }
  /// A lower bound for every kernel: its launch, or on a CPU the calling thread running it alone.
  double leastSeconds() const { return std::min(target.launchSec, target.ownLaunchSec); }
  /// A hash of what an equation computes (PatternKeys).
  Hash128 key(int vertex) { return keys.key(*region.vertices[vertex].equation); }
  /// The equations of a kernel with these phases, in its order.
  Group groupOf(const Phases &phases) { return order.group(phases); }

  int64_t evaluations() const { return budget.spent(); }
  /// True if the budget is spent: kernels that are not in the cache are refused.
  bool isSpent() const { return budget.isSpent() || equations.isSpent(); }
  /// The number of kernels that were refused.
  int64_t refusals() const { return refused; }

private:
  Result<const KernelTime *> timeOf(const std::vector<int> &vertices);
  double secondsAmong(const std::vector<const cost::LaunchTime *> &kernels,
                      const std::vector<cost::Counts> &phases) const;
  double secondsOfOne(const std::vector<const cost::LaunchTime *> &kernels) const;
  Result<double> bytesApart(const std::vector<int> &vertices);

  const FusionContext &context;
  const SearchGraph &region;
  const Target &target;
  const ScheduleOracle &oracle;
  PackOrder order;
  PatternKeys keys;
  std::unordered_map<std::vector<int>, const KernelTime *, VerticesHash> known;
  std::map<Hash128, KernelTime> ofEqual; // by their keys
  search::Budget budget, equations;
  int64_t refused = 0;
};

} // namespace fusec

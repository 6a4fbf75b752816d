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

/// Vertices of a launch, one set a phase.
using Phases = VertexSets;

/// Seconds of kernels by the accurate model, each asked for once.
class Judge {
public:
  /// `evaluations`: kernels that it may ask for, each vertex alone included, which must come first; `weighed`:
  /// equations that those of several vertices may have, all together.
  Judge(const FusionContext &context, const Region &region, const Target &target,
        const ScheduleOracle &oracle, int64_t evaluations, int64_t weighed)
      : context(context), region(region), target(target), oracle(oracle), order(context, region),
        keys(context.program, context.uses), budget(evaluations), equations(weighed) {}

  /// Infinite where no schedule runs the vertices as one kernel, where the best one moves more bytes than all of them
  /// apart would (fewer launches are not bought with bytes), and where no evaluation is left to ask.
  Result<double> kernelSeconds(const std::vector<int> &vertices);
  /// Of one kernel with these phases: each takes what it takes alone, with units that suit all of them.
  Result<double> seconds(const Phases &phases);
  /// Of device memory that one kernel of the vertices moves.
  Result<double> bytes(const std::vector<int> &vertices);
  /// True where both compute the same, up to names: one kernel's code serves both.
  Result<bool> isEqual(const std::vector<int> &a, const std::vector<int> &b);
  /// The same vertices' bytes as one kernel and as one each, if that is why no kernel holds them.
  Result<std::optional<std::pair<double, double>>> movesMore(const std::vector<int> &vertices);
  /// Orders plans that take equally long by what their launches compute, so that the order of a model's nodes does not
  /// matter.
  uint64_t tieOf(const std::vector<Phases> &launches);
  double launchSeconds() const { return target.launchSec; }
  /// No kernel takes less. On a CPU the calling thread may do it alone.
  double leastSeconds() const { return std::min(target.launchSec, target.ownLaunchSec); }
  /// What an equation computes (PatternKeys).
  Hash128 key(int vertex) { return keys.key(*region.vertices[vertex].equation); }
  /// The equations of such a kernel.
  Group groupOf(const Phases &phases) { return order.group(phases); }

  int64_t evaluations() const { return budget.spent(); }
  /// Kernels that it has not met are refused from here on.
  bool isSpent() const { return budget.isSpent() || equations.isSpent(); }
  /// Kernels asked for when no evaluation was left.
  int64_t refusals() const { return refused; }

private:
  Result<const KernelTime *> timeOf(const std::vector<int> &vertices);
  double secondsAmong(const std::vector<const cost::LaunchTime *> &kernels,
                      const std::vector<cost::Counts> &phases) const;
  double secondsOfOne(const std::vector<const cost::LaunchTime *> &kernels) const;
  Result<double> bytesApart(const std::vector<int> &vertices);

  const FusionContext &context;
  const Region &region;
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

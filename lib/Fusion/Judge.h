#pragma once
#include "Fusion/PackOrder.h"
#include "Fusion/PatternKeys.h"
#include "Fusion/Plan.h"

#include <limits>
#include <map>
#include <unordered_map>

namespace fusec {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Vertices of a launch, one set a phase.
using Phases = VertexSets;

/// Seconds of kernels by the accurate model, each asked for once.
class Judge {
public:
  Judge(const FusionContext &context, const Region &region, const Target &target,
        const ScheduleOracle &oracle)
      : context(context), region(region), target(target), oracle(oracle), order(context, region),
        keys(context.program, context.uses) {}

  /// Infinite where no schedule runs the vertices as one kernel.
  Result<double> kernelSeconds(const std::vector<int> &vertices);
  /// Of one kernel with these phases: each takes what it takes alone, with units that suit all of them.
  Result<double> seconds(const Phases &phases);
  /// What an equation computes (PatternKeys).
  Hash128 key(int vertex) { return keys.key(*region.vertices[vertex].equation); }
  /// The equations of such a kernel.
  Group groupOf(const Phases &phases) { return order.group(phases); }

private:
  Result<const KernelTime *> timeOf(const std::vector<int> &vertices);

  const FusionContext &context;
  const Region &region;
  const Target &target;
  const ScheduleOracle &oracle;
  PackOrder order;
  PatternKeys keys;
  std::unordered_map<std::vector<int>, const KernelTime *, VerticesHash> known;
  std::map<Hash128, KernelTime> ofEqual; // by their keys
};

} // namespace fusec

#pragma once
#include "Fusion/PackOrder.h"
#include "Fusion/PatternKeys.h"
#include "Fusion/Plan.h"

#include <limits>
#include <map>

namespace fusec {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Vertices of a launch, one set a phase.
using Phases = VertexSets;

/// Seconds of kernels by the accurate model, each asked for once.
class Judge {
public:
  Judge(const FusionContext &context, const Region &region, const ScheduleOracle &oracle)
      : context(context), region(region), oracle(oracle), order(context, region),
        keys(context.program, context.uses) {}

  /// Infinite where no schedule runs the vertices as one kernel.
  Result<double> kernelSeconds(const std::vector<int> &vertices) { return seconds({vertices}); }
  /// Of one kernel with these phases.
  Result<double> seconds(const Phases &phases);
  /// What an equation computes (PatternKeys).
  Hash128 key(int vertex) { return keys.key(*region.vertices[vertex].equation); }
  /// The equations of such a kernel.
  Group groupOf(const Phases &phases) { return order.group(phases); }

private:
  const FusionContext &context;
  const Region &region;
  const ScheduleOracle &oracle;
  PackOrder order;
  PatternKeys keys;
  struct HashOf {
    size_t operator()(const Phases &phases) const;
  };
  std::unordered_map<Phases, double, HashOf> known;
  std::map<Hash128, double> ofEqual; // by their keys
};

} // namespace fusec

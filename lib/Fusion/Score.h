#pragma once
#include "Expr/Rows.h"
#include "Fusion/Legality.h"
#include "Search/Budget.h"
#include "Target/Target.h"

#include <unordered_map>

namespace fusec {

/// Seconds of kernels by the cost model's quick fidelity: bytes from the tensors' shapes, operations from the
/// equations, nothing of schedules. FusionStitching's delta score f (section 4.3) is the difference of two such sums.
class Score {
public:
  /// `evaluations`: kernels that it may look at, each vertex alone included, for which they must do.
  Score(const FusionContext &context, const Region &region, const Target &target,
        int64_t evaluations = INT64_MAX);

  /// Infinite where no evaluation is left for a kernel that it has not met.
  double kernelSeconds(const std::vector<int> &vertices) const;
  /// What one kernel saves over a kernel for each vertex.
  double gain(const std::vector<int> &vertices) const;
  int64_t evaluations() const { return budget.spent(); }

private:
  struct Estimate {
    double seconds, parallel; // blocks side by side
  };
  Estimate together(const std::vector<int> &vertices) const;
  double estimate(const std::vector<int> &vertices) const;
  double bytesOf(TensorId t) const;
  double elementsOf(const DimExpr &e) const;

  const FusionContext &context;
  const Region &region;
  const Target &target;
  std::vector<int64_t> symbols; // values that the program is tuned for
  struct Work {
    double points, weight, loads; // of the domain; vector instructions and loads for one of them
    RowFacts rows;
  };
  std::vector<Work> works;
  std::vector<Estimate> alone; // each vertex
  // By whether packs are allowed: drafts and rounds of the search ask again and again.
  mutable std::unordered_map<std::vector<int>, double, VerticesHash> known[2];
  mutable search::Budget budget;
};

} // namespace fusec

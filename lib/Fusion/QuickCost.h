#pragma once
#include "Expr/Rows.h"
#include "Fusion/Legality.h"
#include "Search/Budget.h"
#include "Target/Target.h"

#include <unordered_map>

namespace fusec {

/// Seconds of kernels by the quick model (cost::delta): bytes follow from the tensors' shapes and operations from the
/// equations, without a schedule. FusionStitching's delta score f (section 4.3) is the difference of two such sums.
class QuickCost {
public:
  /// `evaluations`: kernels that it may price. They must suffice for each vertex alone.
  QuickCost(const FusionContext &context, const SearchGraph &region, const Target &target,
            int64_t evaluations = INT64_MAX);

  /// Seconds of the vertices as one kernel. Infinite if it is not in the cache and the budget is spent.
  double kernelSeconds(const std::vector<int> &vertices) const;
  /// Seconds that one kernel saves over one kernel per vertex.
  double gain(const std::vector<int> &vertices) const;
  int64_t evaluations() const { return budget.spent(); }

private:
  struct Estimate {
    double seconds, parallel; // parallel: blocks that can run at once
  };
  Estimate together(const std::vector<int> &vertices) const;
  double estimate(const std::vector<int> &vertices) const;
  double bytesOf(TensorId t) const;
  double elementsOf(const DimExpr &e) const;

  const FusionContext &context;
  const SearchGraph &region;
  const Target &target;
  std::vector<int64_t> symbols; // values that the program is tuned for
  struct Work {
    double points, weight, loads; // points of the domain; vector instructions and loads per point
    RowFacts rows;
    std::vector<double> elements; // of each tensor that it reads, at most
  };
  std::vector<Work> works;
  std::vector<Estimate> alone; // by vertex
  // Cache of kernelSeconds, without and with packs.
  mutable std::unordered_map<std::vector<int>, double, VerticesHash> known[2];
  mutable search::Budget budget;
};

} // namespace fusec

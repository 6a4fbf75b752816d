#pragma once
#include "Expr/Rows.h"
#include "Fusion/Legality.h"
#include "Target/Target.h"

#include <unordered_map>

namespace fusec {

/// Seconds of kernels by the cost model's quick fidelity: bytes from the tensors' shapes, operations from the
/// equations, nothing of schedules. FusionStitching's delta score f (section 4.3) is the difference of two such sums.
class Score {
public:
  Score(const FusionContext &context, const Region &region, const Target &target);

  double kernelSeconds(const std::vector<int> &vertices) const;
  /// What one kernel saves over a kernel for each vertex.
  double gain(const std::vector<int> &vertices) const;

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
  std::vector<double> alone; // seconds of each vertex
  // By whether packs are allowed: drafts and rounds of the search ask again and again.
  mutable std::unordered_map<std::vector<int>, double, VerticesHash> known[2];
};

} // namespace fusec

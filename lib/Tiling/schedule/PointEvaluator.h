#pragma once
#include "Tiling/schedule/Schedule.h"

#include "Expr/ScalarEval.h"

namespace fusec::tiling {

/// Values of a body's nodes at one point of the domain. A read gives a number below `dataBelow` that depends on its
/// indices alone.
class PointEvaluator {
public:
  PointEvaluator(const Body &body, const std::vector<NodeId> &roots, int64_t dataBelow,
                 const std::vector<int64_t> &symbols);

  /// False where an operation is not known.
  bool at(const std::vector<int64_t> &axes, int64_t step);
  int64_t operator[](NodeId id) const { return values[id].i; }

private:
  ScalarValue data(const Scalar &read) const;

  const Body &body;
  std::vector<NodeId> order; // without those that are the same at all points
  std::vector<ScalarValue> values;
  const int64_t dataBelow;
};

/// The predicates that no data decides.
std::vector<NodeId> knownTests(const Body &body, std::vector<NodeId> predicates);
/// A read is among what the nodes are computed from; with `axes` one that depends on such an axis of the equation.
bool readsData(const Body &body, const std::vector<NodeId> &nodes, uint64_t axes = ~uint64_t{0});
/// Bound of an index that comes from data.
int64_t longestSide(const Shape &shape, const std::vector<int64_t> &symbols);

} // namespace fusec::tiling

#pragma once
#include "Expr/Expr.h"

#include <vector>

namespace fusec {

struct Traffic {
  double readBytes = 0, writtenBytes = 0;
  std::vector<double> readOf; // of readBytes, by tensor
};

/// Device memory traffic that no schedule of the pattern avoids: every element of an argument that its equations read,
/// once (constants too), and every element of an argument that they write, once; at the symbols' opt values. What lives
/// inside the pattern costs nothing here.
///
/// Which elements are read follows from the access maps: a slice reads its part, two taps of a window share what they
/// both read, padding reads nothing, a gather reads at most one element a point of its indices. Where a map is taken
/// apart by divisions over many points, and where a predicate tests more than one dimension at once, the result is an
/// upper bound.
Traffic compulsoryTraffic(const ExprProgram &pattern);

} // namespace fusec

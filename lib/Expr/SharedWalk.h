#pragma once
#include "Expr/Expr.h"

#include <optional>
#include <vector>

namespace fusec {

/// A contraction, other reductions over the same terms for each of its rows, and the map that puts the results
/// together: one walk over the terms serves all of them. What the repair of cascades makes of RMSNorm in front of a
/// matrix product, for y[i, j] = sum_k x[i, k] rsqrt(mean_k x[i, k]^2) w[k, j]:
///
///   reduction s [i; k] sum        %s = mul(%x[i, k], %x[i, k])
///   reduction t [i, j; k] sum     %t = mul(%x[i, k], %w[k, j])
///   map y [i, j]                  %y = mul(%t[i, j], rsqrt(..%s[i]..))
///
/// Positions among the equations.
struct SharedWalk {
  int contraction = -1, finish = -1;
  std::vector<int> rows; // the other reductions, of which none uses another one
  /// A map that makes a factor of the contraction's terms (transforms/SharedFactor.cpp), or -1, and for each of its
  /// axes that of the contraction.
  int factor = -1;
  std::vector<int> factorAxes;
};

/// The equations as that, in an order in which they can run; nullopt where they are something else. A matrix times one
/// vector counts as a contraction. Each of `rows` has the contraction's first axes, or 1 in their place, as its spatial
/// axes, and reduced axes as long as the contraction's.
std::optional<SharedWalk> sharedWalk(const std::vector<const Equation *> &equations);

/// True if the two reductions go over terms of the same extents.
bool sameTerms(const Equation &a, const Equation &b);

} // namespace fusec

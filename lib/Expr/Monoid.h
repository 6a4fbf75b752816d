#pragma once
#include "Expr/Body.h"

#include <optional>
#include <string_view>

namespace fusec {

/// Reduction monoids. Tuples: ArgMax and ArgMin carry (value, index) and keep the first index on a tie,
/// ArgMaxLast/ArgMinLast the last; results are then {value, index (i64)}. Cascade: see CascadeState.
enum class Monoid : uint8_t {
  Sum,
  Prod,
  Max,
  Min,
  And,
  Or,
  Xor,
  Cascade,
  ArgMax,
  ArgMin,
  ArgMaxLast,
  ArgMinLast
};
std::string_view name(Monoid m);
std::optional<Monoid> parseMonoid(std::string_view text);
bool isArgMonoid(Monoid m);
/// Arg monoids and cascades: the accumulator is more than one value.
bool isTupleMonoid(Monoid m);
/// Neutral element of a one-value monoid as a constant node of `t`.
NodeId identityOf(Body &body, Monoid m, DType t);

} // namespace fusec

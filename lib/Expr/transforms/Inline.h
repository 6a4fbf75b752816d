#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// A reader that would grow beyond keeps its reads.
constexpr size_t kMaxBodyNodes = 512;

/// What `read`, of an output of the map `producer`, gives, built in `into`, whose nodes its arguments are and whose
/// axes, step and symbols give the ranges. A guarded read's indices are only valid where its predicate holds: then
/// every read of the copy is guarded by it too.
NodeId inlineMap(Body &into, const Equation &producer, const Scalar &read);

} // namespace fusec

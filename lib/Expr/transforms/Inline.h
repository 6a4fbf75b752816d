#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// A reader that would grow beyond keeps its reads.
constexpr size_t kMaxBodyNodes = 512;

/// The value of output `output` of the map `producer` at `indices`, built in `into` (whose axes, step and
/// symbols give the ranges). With a predicate (kNoNode: none) the indices are only valid where it holds: then
/// every read of the copy is guarded by it, and the result is `otherwise` elsewhere.
NodeId inlineMap(Body &into, const Equation &producer, size_t output,
                 const std::vector<NodeId> &indices, NodeId predicate, NodeId otherwise);

} // namespace fusec

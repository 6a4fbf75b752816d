#pragma once
#include "Graph/Graph.h"

#include <optional>
#include <unordered_map>

namespace fusec {

/// An integer tensor that hangs on sizes alone: the element at i, j... is first + steps[0]*i + steps[1]*j..., as
/// positions of tokens are.
struct Ramp {
  DimExpr first;
  std::vector<int64_t> steps; // by axis
};
using Ramps = std::unordered_map<ValueId, Ramp>;

/// The ramp that the value is; nullopt where it is none, or not known to be one. `ramps`: those of nodes so far.
std::optional<Ramp> rampOf(const Graph &graph, const Ramps &ramps, ValueId id);

/// That of the first output of `node`, whose output types and shapes are set.
std::optional<Ramp> followRamp(const Graph &graph, const Ramps &ramps, const Node &node);

/// The least and the largest element, where there are elements.
std::pair<DimExpr, DimExpr> endsOf(const Ramp &ramp, const Shape &shape);

} // namespace fusec

#pragma once
#include "Graph/Graph.h"
#include "Support/TunedSizes.h"

namespace fusec {

/// The graph's symbols, which say what they are.
std::vector<Symbol> withKinds(const Graph &graph);

} // namespace fusec

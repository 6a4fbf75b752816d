#pragma once
#include "Graph/Graph.h"
#include "Support/TunedSizes.h"

namespace fusec {

/// The graph's symbols; those of which nobody favours a size (SymbolKind::Any) say what they are.
std::vector<Symbol> withKinds(const Graph &graph);

} // namespace fusec

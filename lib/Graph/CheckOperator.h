#pragma once
#include "Graph/Graph.h"

namespace fusec {

/// Checks one node by the rule of its operator (rules/): counts, attributes, types and shapes of operands and
/// results. Diagnostics say what is wrong and leave `where` empty; they are UnsupportedShape where symbolic sizes
/// may or may not fit, else BadIr. Operands that exist and values in range are the caller's business.
Status checkOperator(const Graph &graph, const Node &node);

/// Whether two sizes are equal: as expressions, or for sampled values of the symbols where the normal form does not
/// decide, as for n*6 and floordiv(n, 2)*12 with even n.
bool sameSize(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols);

} // namespace fusec

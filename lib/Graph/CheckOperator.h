#pragma once
#include "Graph/SizeCheck.h"

namespace fusec {

/// The types of a node's outputs by the rule of its operator (rules/), which checks counts of inputs and regions,
/// attributes, and types and shapes of operands first. The node's own outputs are not looked at. `outShapes` are the
/// outputs' shapes where operands and attributes do not decide them (Reshape, Tile, Split, ...), else not read.
/// Operands that exist and values in range are the caller's business.
Result<std::vector<TypedShape>> inferTypes(const Graph &graph, const Node &node,
                                           const std::vector<Shape> &outShapes,
                                           const SizeCheck &sizes);

/// Checks one node: its outputs are there as its operator's row says and have the types that the rule gives.
/// Diagnostics say what is wrong and leave `where` empty. `taken`: expressions that are 0 in runs that leave the node
/// out, so that its sizes need not fit there.
Status checkOperator(const Graph &graph, const Node &node, const Shape &taken = {});

/// Whether the operator has a rule.
bool hasRule(OpKind op);

} // namespace fusec

#pragma once
#include "Expr/Body.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace fusec {

/// Sum of coefficient * product of atoms, which are nodes; no coefficient is 0.
using Polynomial = std::map<std::vector<NodeId>, double>;

/// What a node of floats comes to, in exact numbers. Atoms are what is no sum or product of others, and the largest
/// nodes that do not vary.
Polynomial polynomialOf(const Body &body, NodeId id, const std::function<bool(NodeId)> &varies);

Polynomial times(const Polynomial &a, const Polynomial &b);
/// a + factor * b
Polynomial plus(Polynomial a, const Polynomial &b, double factor);
/// The factor that makes `b` from `a`; nullopt where there is none.
std::optional<double> ratio(const Polynomial &b, const Polynomial &a);

} // namespace fusec

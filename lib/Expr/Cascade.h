#pragma once
#include "Expr/Expr.h"

#include <optional>
#include <string>
#include <vector>

namespace fusec {

/// For each state of a cascade: 0 where its value uses no state, else one more than the highest rank that it uses.
/// States of one rank can take in points in any order.
std::vector<int> stateRanks(const Equation &cascade);
/// The highest of them; -1 for what is no cascade.
int lastRank(const Equation &equation);
/// Nodes that fold a point into the states of one rank; all roots of what is no cascade. And those that correct them.
std::vector<NodeId> resultsOfRank(const Equation &equation, int rank);
std::vector<NodeId> correctionsOfRank(const Equation &cascade, int rank);

/// The rules of CascadeState that the equation breaks.
std::vector<std::string> cascadeProblems(const Equation &equation);

/// For what drops dead equations: states of a cascade behind the last one whose output is needed go, and those in
/// front of the first one lose their output. One output at least is needed.
void dropStates(Equation &equation, const std::vector<bool> &needed);

/// Repairs cascaded reductions: where a reduction uses the result of another one over the same points, and its
/// algebra allows it (transforms/CascadeAlgebra.h), both become one pass: a cascade, or two sums of which neither
/// uses the other and a map that puts the factor back. An alternative (Alternatives.h) of patterns that hold maps and
/// reductions; nullopt where nothing could be repaired. `refusals`: for each reduction that uses another one and
/// stays as it is, why, for people.
std::optional<ExprProgram> repairCascades(const ExprProgram &program,
                                          std::vector<std::string> *refusals = nullptr);

} // namespace fusec

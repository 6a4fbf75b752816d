#pragma once
#include "Expr/Expr.h"
#include "Graph/Graph.h"
#include "Minimise.h"

#include <optional>

namespace fusec::reduce {

/// The chosen top-level nodes (equations and control items) as a program of their own. What they read of the others
/// becomes an input, what the others read of them an output. Nothing where that is no program: without an output, or
/// one that does not verify.
std::optional<Graph> partOf(const Graph &graph, const Choice &nodes);
std::optional<ExprProgram> partOf(const ExprProgram &program, const Choice &items);

/// The program with these outputs alone and what they need; nothing as above.
std::optional<Graph> withOutputs(const Graph &graph, const Choice &outputs);
std::optional<ExprProgram> withOutputs(const ExprProgram &program, const Choice &outputs);

} // namespace fusec::reduce

#pragma once
#include "Tiling/schedule/Schedule.h"

#include <set>

namespace fusec::tiling {

/// Loops around a statement, outermost first.
using Loops = std::vector<const TreeNode *>;
/// How many loops two statements have in common.
size_t commonLoops(const Loops &a, const Loops &b);

/// A statement and the loops around it.
struct Statement {
  const TreeNode *leaf;
  Loops loops;
  size_t order; // among all statements

  bool isInside(const TreeNode *loop) const;
};

/// All statements of a schedule, which outlives them, in their order.
std::vector<Statement> statementsOf(const Schedule &schedule);

/// The equations that statements among the nodes or in their loops are about; that of a Stage is the reader.
std::set<int> equationsIn(std::span<const TreeNode> nodes, const Schedule &schedule);

/// True if several threads side by side, lanes or units, each have a part of what an equation reduces to: among the
/// loops around its Compute, one of that kind runs over a reduced axis of it.
bool sharesReduction(const Schedule &schedule, int equation, const Loops &loops, LoopKind kind);
/// True if each lane reduces to a value of its own: lanes run over a spatial axis of the equation.
bool lanesKeep(const Schedule &schedule, int equation, const Loops &loops);

} // namespace fusec::tiling

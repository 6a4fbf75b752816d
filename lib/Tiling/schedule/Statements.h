#pragma once
#include "Tiling/schedule/Schedule.h"

#include <map>
#include <set>

namespace fusec::tiling {

/// Loops around a statement, outermost first.
using Loops = std::vector<const TreeNode *>;

/// A statement and the loops around it.
struct Statement {
  const TreeNode *leaf;
  Loops loops;
  size_t order; // among all statements

  bool isInside(const TreeNode *loop) const;
};

/// All statements of a schedule, which outlives them, in their order.
std::vector<Statement> statementsOf(const Schedule &schedule);

/// Whether an equation's Compute is among the nodes or in their loops; `loops` gets those around the first one, the
/// outermost first.
bool findCompute(const std::vector<TreeNode> &nodes, int equation, Loops &loops);
/// Adds the equations that have a Store there.
void addStored(const std::vector<TreeNode> &nodes, std::set<int> &equations);

/// True if several threads side by side, lanes or units, each have a part of what an equation reduces to: among the
/// loops around its Compute, one of that kind runs over a reduced axis of it.
bool sharesReduction(const Schedule &schedule, int equation, const Loops &loops, LoopKind kind);
/// True if each lane reduces to a value of its own: lanes run over a spatial axis of the equation.
bool lanesKeep(const Schedule &schedule, int equation, const Loops &loops);

/// The loops around the first Compute of each equation among the nodes, outermost first.
std::map<int, Loops> computesOf(std::span<const TreeNode> nodes);

} // namespace fusec::tiling

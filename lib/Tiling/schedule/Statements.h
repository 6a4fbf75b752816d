#pragma once
#include "Tiling/schedule/Schedule.h"

#include <map>
#include <set>

namespace fusec::tiling {

/// A statement and the loops around it, outermost first.
struct Statement {
  const TreeNode *leaf;
  std::vector<const TreeNode *> loops;
  size_t order; // among all statements

  bool isInside(const TreeNode *loop) const;
};

/// All statements of a schedule, which outlives them, in their order.
std::vector<Statement> statementsOf(const Schedule &schedule);
/// The statements of one kind about one equation or operand.
std::vector<const Statement *> statementsOf(const std::vector<Statement> &all, LeafKind leaf,
                                            int target);

/// Whether an equation's Compute is among the nodes or in their loops; `loops` gets those around the first one, the
/// outermost first.
bool findCompute(const std::vector<TreeNode> &nodes, int equation,
                 std::vector<const TreeNode *> &loops);
/// Adds the equations that have a Store there.
void addStored(const std::vector<TreeNode> &nodes, std::set<int> &equations);

/// The tensors that a statement reads, or copies a tile of.
std::vector<TensorId> valuesReadBy(const TreeNode &leaf, const Schedule &schedule,
                                   const std::vector<const Equation *> &equations);
/// Whether the value is one of them.
bool readsValue(const TreeNode &leaf, TensorId value, const Schedule &schedule,
                const std::vector<const Equation *> &equations);

/// True if several threads side by side, lanes or units, each have a part of what an equation reduces to: among the
/// loops around its Compute, one of that kind runs over a reduced axis of it.
bool sharesReduction(const Schedule &schedule, int equation,
                     const std::vector<const TreeNode *> &loops, LoopKind kind);
/// True if each lane reduces to a value of its own: lanes run over a spatial axis of the equation.
bool lanesKeep(const Schedule &schedule, int equation, const std::vector<const TreeNode *> &loops);

/// For each of so many equations, the phase that computes it; phases of a step's loop count like those of the root.
std::vector<int> phasesOfEquations(const Schedule &schedule, size_t equations);

/// The loops around the first Compute of each equation among the nodes, outermost first.
std::map<int, std::vector<const TreeNode *>> computesOf(std::span<const TreeNode> nodes);

} // namespace fusec::tiling

#pragma once
#include "Tiling/schedule/FlatAccess.h"

namespace fusec::tiling {

/// What every schedule's prediction asks of an equation, found once for all schedules of its pattern.
struct EquationFacts {
  explicit EquationFacts(const Equation &equation, const ExprProgram &program);

  const Equation &equation;
  std::vector<NodeId> reads;                       // readsOf
  std::vector<std::optional<FlatAccess>> accesses; // of each of `reads`
  std::vector<uint64_t> axes;                      // axisDependences of all nodes
  std::vector<std::vector<bool>> neededOfRank;     // nodes that the Compute of a rank evaluates

  /// Nodes that the Compute of a rank evaluates where the values of these reads are at hand.
  std::vector<bool> neededBeside(const std::vector<NodeId> &atHand, int rank) const;
  /// Position of a read in `reads`.
  int ordinalOf(NodeId read) const;
  /// Axes that decide whether a read is done: its own, and those of the reads that it is an index of.
  uint64_t decidingAxes(NodeId read) const;
};
/// The facts of a program's scheduledEquations, which outlive this.
std::vector<EquationFacts> factsOf(const ExprProgram &program);

} // namespace fusec::tiling

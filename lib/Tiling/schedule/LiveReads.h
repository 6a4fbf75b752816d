#pragma once
#include "Tiling/counts/StagedCopyCounter.h"

#include <optional>

namespace fusec::tiling {

/// Level of an edge; what is none lies in device memory.
MemLevel levelOf(const Schedule &schedule, TensorId tensor);
/// That one of the schedule's operands that is `read` (its place among the equation's), or nullptr.
const Operand *operandOf(const Schedule &schedule, int equation, int read);
/// Makes it an edge of that level; none where that is device memory.
void setLevel(Schedule &schedule, TensorId tensor, MemLevel level);
/// Tensors that the pattern's equations make for each other, a scan's states too, in the order of the tensors: each has
/// a level.
std::vector<TensorId> valuesInside(const ExprProgram &pattern);
/// The equation that makes a tensor; -1: none of them.
int producerOf(const std::vector<const Equation *> &equations, TensorId tensor);
/// Of a read among its equation's (readsOf).
int ordinalOf(const Equation &equation, NodeId read);
/// Of a register that holds all elements along a schedule's axis, as an LSTM's sums hold the gates of a point: the one
/// that a read names by a constant. `loops`: around the maker's Compute.
std::optional<int64_t> namedElement(const Schedule &schedule,
                                    const std::vector<const TreeNode *> &loops, int maker,
                                    AxisId axis, const Equation &reader, NodeId read);

/// Reads that a statement makes: each once, those in the indices of a guarded read under its predicate. With
/// `operandsStand`, what an operand stands for is not computed where the operand is read.
class LiveReads {
public:
  /// `facts`: of the pattern's equations, which outlive this.
  LiveReads(const Schedule &schedule, const std::vector<EquationFacts> &facts, int equation,
            const std::vector<NodeId> &roots, bool operandsStand);

  std::vector<const Operand *> operands;
  std::vector<GuardedRead> memory;

private:
  void visit(NodeId id, const std::vector<NodeId> &guards);
  bool isMade(TensorId tensor) const;

  const Schedule &schedule;
  const std::vector<EquationFacts> &facts;
  const int equation;
  const bool operandsStand;
  std::vector<bool> visited; // nodes of the body
};

} // namespace fusec::tiling

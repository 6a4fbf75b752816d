#pragma once
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// A read that a statement makes where all of `guards` hold, its own predicate among them.
struct GuardedRead {
  NodeId read;
  std::vector<NodeId> guards;
};

/// Reads that a statement makes: each once, those in the indices of a guarded read under its predicate. With
/// `operandsStand`, what an operand stands for is not computed where the operand is read.
class LiveReads {
public:
  LiveReads(const BoundSchedule &bound, int equation, const std::vector<NodeId> &roots,
            bool operandsStand);

  std::vector<const Operand *> operands;
  std::vector<GuardedRead> memory;

private:
  void visit(NodeId id, const std::vector<NodeId> &guards);

  const BoundSchedule &bound;
  const int equation;
  const bool operandsStand;
  std::vector<bool> visited; // nodes of the body
};

} // namespace fusec::tiling

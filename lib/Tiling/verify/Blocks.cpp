// What one block makes no other one reads in the same phase: blocks run in no order. Proved for all sizes, from the
// loops and the maps alone.
//
//   block m:8 {                          # m stands for axis 0 of e0 and of e1
//     .. compute e0 .. compute e1 .. }   # e1 [i, j] = .. %e0[i, k] ..: index 0 of the read is axis 0 of e1
//
// Blocks split the points of e0 by its axis 0, and each reads the rows that it made. A value whose equation has no axis
// among those of the blocks is made by each block for itself. A scan's states are read in the half that its step does
// not write (schedule/Schedule.h).
#include "Tiling/verify/Rules.h"

#include "Tiling/schedule/PhaseSignals.h"
#include "Tiling/verify/RuleChecker.h"

namespace fusec::tiling {

namespace {

/// True if the read takes, of what the maker has along the axes `made`, what belongs to the reader's own place along
/// the axes `taken`, which are as long; an axis of extent 1 has one place.
bool readsOwn(const Equation &maker, const std::vector<int> &made, const Equation &reader,
              const std::vector<int> &taken, NodeId read) {
  const std::vector<NodeId> indices = indexOperands(reader.body[read]);
  bool own = made.size() == taken.size();
  for (size_t i = 0; own && i < made.size(); ++i) {
    if (made[i] >= static_cast<int>(indices.size()))
      return false;
    const Scalar &index = reader.body[indices[made[i]]];
    own = maker.axes[made[i]].extent == reader.axes[taken[i]].extent &&
          (reader.axes[taken[i]].extent.isConst(1) ||
           (index.op == ScalarOp::Axis && index.index == taken[i]));
  }
  return own;
}

} // namespace

std::vector<std::string> blockProblems(const BoundSchedule &bound) {
  RuleChecker broken(bound);
  std::vector<const Statement *> computes;
  for (const Statement &statement : bound.statements())
    if (statement.leaf->kind == LeafKind::Compute && statement.leaf->rank == 0)
      computes.push_back(&statement);
  auto check = [&](const Statement &from, const Statement &to, NodeId read) {
    const int maker = from.leaf->equation, reader = to.leaf->equation;
    for (const LoopNode *block : from.loops) {
      const AxisUse *made = bound.use(block->axis, maker), *taken = bound.use(block->axis, reader);
      if (block->kind != LoopKind::Block || !made)
        continue;
      if (to.isInside(block) && taken && !made->reduction && !taken->reduction &&
          readsOwn(bound.equation(maker), made->positions, bound.equation(reader), taken->positions,
                   read))
        continue;
      broken.require(false, "of e", maker,
                     " a block reads in the same phase only what it makes itself, given e", reader,
                     ", which reads what other blocks make along ", *block,
                     "; put a barrier between them");
    }
  };
  const std::vector<int> phaseOf = phaseOfEquations(bound);
  for (const Statement *reader : computes)
    for (NodeId read : bound.facts(reader->leaf->equation).reads)
      for (const Statement *maker : computes) {
        const int from = maker->leaf->equation, to = reader->leaf->equation;
        if (from != to && phaseOf[from] == phaseOf[to] &&
            bound.program.producer(bound.equation(to).body[read].index) == from)
          check(*maker, *reader, read);
      }
  broken.add(phaseSignals(bound).problems);
  return broken.list();
}

} // namespace fusec::tiling

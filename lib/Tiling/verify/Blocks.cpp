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

#include <algorithm>

namespace fusec::tiling {

namespace {

/// An equation and the loops over blocks around it.
struct Place {
  int equation;
  std::vector<const LoopNode *> blocks;
};

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
  std::vector<Place> places;
  for (const Statement &statement : bound.statements())
    if (statement.leaf->kind == LeafKind::Compute && statement.leaf->rank == 0) {
      places.push_back({statement.leaf->equation, {}});
      std::ranges::copy_if(statement.loops, std::back_inserter(places.back().blocks),
                           [](const LoopNode *loop) { return loop->kind == LoopKind::Block; });
    }
  auto check = [&](const Place &maker, const Place &reader, NodeId read) {
    for (const LoopNode *block : maker.blocks) {
      const AxisUse *made = bound.use(block->axis, maker.equation),
                    *taken = bound.use(block->axis, reader.equation);
      if (!made)
        continue;
      const bool shared = std::ranges::find(reader.blocks, block) != reader.blocks.end();
      if (shared && taken && !made->reduction && !taken->reduction &&
          readsOwn(bound.equation(maker.equation), made->positions, bound.equation(reader.equation),
                   taken->positions, read))
        continue;
      broken.require(false, "of e", maker.equation,
                     " a block reads in the same phase only what it makes itself, given e",
                     reader.equation, ", which reads what other blocks make along ", *block,
                     "; put a barrier between them");
    }
  };
  const std::vector<int> phaseOf = phaseOfEquations(bound);
  for (const Place &reader : places)
    for (NodeId read : bound.facts(reader.equation).reads)
      for (const Place &maker : places)
        if (maker.equation != reader.equation &&
            phaseOf[maker.equation] == phaseOf[reader.equation] &&
            bound.program.producer(bound.equation(reader.equation).body[read].index) ==
                maker.equation)
          check(maker, reader, read);
  broken.add(phaseSignals(bound).problems);
  return broken.list();
}

} // namespace fusec::tiling

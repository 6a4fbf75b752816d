// What one block makes no other one reads in the same phase: blocks run in no order. Proved for all sizes, from the
// loops and the maps alone.
//
//   block m:8 {                          # m stands for axis 0 of e0 and of e1
//     .. compute e0 .. compute e1 .. }   # e1 [i, j] = .. %e0[i, k] ..: index 0 of the read is axis 0 of e1
//
// Blocks split the points of e0 by its axis 0, and each reads the rows that it made. A value whose equation has no axis
// among those of the blocks is made by each block for itself.
#include "Tiling/VerifyFlow.h"

#include "Expr/Rows.h"
#include "Tiling/Builder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

/// An equation and the loops over blocks around it.
struct Place {
  int equation;
  std::vector<const TreeNode *> blocks;
};

void findPlaces(std::span<const TreeNode> nodes, std::vector<const TreeNode *> &path,
                std::vector<Place> &places) {
  for (const TreeNode &node : nodes) {
    if (!node.isLoop) {
      if (node.leaf == LeafKind::Compute && node.rank == 0)
        places.push_back({node.target, path});
      continue;
    }
    if (node.loop == LoopKind::Block)
      path.push_back(&node);
    findPlaces(node.children, path, places);
    if (node.loop == LoopKind::Block)
      path.pop_back();
  }
}

/// True if the read's indices at these positions are the reader's own axes, which are as long as the maker's; an axis
/// of extent 1 has one place.
bool readsOwn(const Equation &maker, const Equation &reader, NodeId read,
              const std::vector<int> &positions) {
  return std::all_of(positions.begin(), positions.end(), [&](int p) {
    return maker.axes[p].extent == reader.axes[p].extent &&
           (reader.axes[p].extent.isConst(1) || readsOwnRow(reader, reader.body[read], p));
  });
}

} // namespace

std::vector<std::string> blockProblems(const Schedule &schedule, const ExprProgram &pattern) {
  std::vector<std::string> problems;
  if (scanOf(pattern)) // one block, or carries that no other one reads
    return problems;
  const std::vector<const Equation *> equations = scheduledEquations(pattern);
  for (std::span<const TreeNode> phase : phasesOf(schedule.tree)) {
    std::vector<Place> places;
    std::vector<const TreeNode *> path;
    findPlaces(phase, path, places);
    auto check = [&](const Place &maker, const Place &reader, NodeId read) {
      for (const TreeNode *block : maker.blocks) {
        const ScheduleAxis &axis = schedule.axes[block->axis];
        const AxisUse *made = axis.in(maker.equation), *taken = axis.in(reader.equation);
        if (!made)
          continue;
        const bool shared =
            std::find(reader.blocks.begin(), reader.blocks.end(), block) != reader.blocks.end();
        if (shared && taken && !made->reduction && !taken->reduction &&
            made->positions == taken->positions &&
            readsOwn(*equations[maker.equation], *equations[reader.equation], read,
                     made->positions))
          continue;
        problems.push_back(
            "what blocks along " + axis.name + " make of e" + std::to_string(maker.equation) +
            " no other block reads in the phase; e" + std::to_string(reader.equation) + " does");
      }
    };
    for (const Place &reader : places)
      for (NodeId read : readsOf(*equations[reader.equation]))
        for (const Place &maker : places) {
          const std::vector<TensorId> &outputs = equations[maker.equation]->outputs;
          const TensorId t = equations[reader.equation]->body[read].index;
          if (maker.equation != reader.equation &&
              std::count(outputs.begin(), outputs.end(), t) != 0)
            check(maker, reader, read);
        }
  }
  return problems;
}

} // namespace fusec::tiling

#include "Tiling/counts/CascadeWork.h"

#include "Expr/Cascade.h"
#include "Expr/OpWeight.h"

#include <cmath>

namespace fusec::tiling {

static double correctionWeight(const Equation &cascade, int rank) {
  double weight = 0;
  for (NodeId id : cascade.body.reachable(correctionsOfRank(cascade, rank)))
    weight += weightOf(cascade.body[id].op);
  return weight;
}

void addCascadeWork(const Equation &cascade, const TreeNode &leaf, double times, int lanes,
                    cost::Counts &counts) {
  const auto states = double(cascade.states.size());
  if (leaf.leaf == LeafKind::Correct) {
    counts.vectorOps += times * (correctionWeight(cascade, leaf.rank) + states);
  } else if (leaf.leaf == LeafKind::Combine) {
    double merge = 3 * states;
    for (int rank = 1; rank <= lastRank(cascade); ++rank)
      merge += 2 * correctionWeight(cascade, rank);
    counts.vectorOps += times * merge * std::log2(double(lanes));
  } else {
    counts.vectorLoads += times * states;
  }
}

} // namespace fusec::tiling

#include "Tiling/counts/StatementWork.h"

#include "Expr/Cascade.h"
#include "Expr/OpWeight.h"
#include "Expr/SortKey.h"
#include "Tiling/schedule/TopK.h"

#include <algorithm>
#include <cmath>

namespace fusec::tiling {

static double correctionWeight(const Equation &cascade, int rank) {
  double weight = 0;
  for (NodeId id : cascade.body.reachable(correctionsOfRank(cascade, rank)))
    weight += weightOf(cascade.body[id].op);
  return weight;
}

void addCascadeWork(const BoundSchedule &bound, const CountedLeaf &statement,
                    cost::Counts &counts) {
  const auto &[leaf, loops, times] = statement;
  const Equation &cascade = bound.equation(leaf.equation);
  const auto states = double(cascade.states.size());
  if (leaf.kind == LeafKind::Correct) {
    counts.vectorOps += times * (correctionWeight(cascade, leaf.rank) + states);
  } else if (leaf.kind == LeafKind::Combine) {
    double merge = 3 * states;
    for (int rank = 1; rank <= lastRank(cascade); ++rank)
      merge += 2 * correctionWeight(cascade, rank);
    counts.vectorOps += times * merge * std::log2(double(bound.schedule.lanes));
  } else {
    counts.vectorLoads += times * states;
  }
}

void addTopKWork(const BoundSchedule &bound, const CountedLeaf &statement, bool vectorLanes,
                 cost::Counts &counts) {
  const Schedule &schedule = bound.schedule;
  const auto &[leaf, loops, times] = statement;
  const Equation &e = bound.equation(leaf.equation);
  double words = double(sizeInBytes(sortKeyType(bound.program.tensor(e.opaqueInputs[0]).type))) / 4;
  double width = double(schedule.units) * schedule.lanes;
  bool selects = std::ranges::any_of(loops, [&](const LoopNode *loop) {
    const AxisUse *use = bound.use(loop->axis, statement.leaf.equation);
    return use && use->positions.back() == e.numSpatial - 1;
  });
  switch (leaf.kind) {
  case LeafKind::Compute: // a key takes about 8 operations, the comparisons with two pairs as many
    counts.vectorOps += times * 16 * words;
    counts.vectorLoads += times;
    return;
  case LeafKind::Combine: {
    counts.vectorOps += times * 10 * words * std::log2(schedule.lanes);
    if (schedule.units > 1 && !innermost(loops, LoopKind::Unit)) {
      counts.vectorOps += times * 6 * words * schedule.units;
      counts.barriers += times * 2;
    }
    return;
  }
  case LeafKind::Sort: {
    const DimExpr &length = e.axes[e.numSpatial].extent;
    const auto threads = static_cast<int64_t>(width);
    int64_t padded = *paddedLength(length, bound.program.expr.symbols);
    counts.unitsPerBlock = std::max(counts.unitsPerBlock, double(schedule.units));
    const auto filled = double(bound.valueOf(filledPlaces(length, padded, threads)));
    counts.vectorOps += times * std::ceil(filled / width) * 10 * words;
    counts.barriers += times;
    for (int64_t size = 2; size <= padded; size *= 2) {
      if (!length.isConst() && !takesMerge(bound.valueOf(length), size))
        break;
      const auto pairs = double(bound.valueOf(pairsMerged(length, size, padded, threads)));
      const double perRound = times * std::ceil(pairs / width);
      for (int64_t distance = size / 2; distance > 0; distance /= 2) {
        // Two pairs are loaded and stored. On a CPU the lanes' places are neighbours where the distance is wide
        // enough, but for the upper ones of a round of mirrored places.
        bool near = vectorLanes && distance < schedule.lanes,
             mirrored = vectorLanes && distance == size / 2;
        double alone = near ? 8 : mirrored ? 4 : 0;
        counts.vectorOps += perRound * 8 * words;
        counts.vectorLoads += perRound * (8 - alone) * words;
        counts.gathers += perRound * alone * schedule.lanes;
        counts.barriers += times;
      }
    }
    return;
  }
  case LeafKind::Select: {
    const int64_t rows = rowsOfTile(
        *paddedLength(e.axes[e.numSpatial].extent, bound.program.expr.symbols), schedule.lanes);
    const double length = bound.valueOf(e.axes[e.numSpatial].extent),
                 k = bound.valueOf(e.axes[e.numSpatial - 1].extent),
                 tiles = std::ceil(length / double(rows * schedule.lanes)),
                 searched = (tiles + k) * double(rows);
    // Elements are numbers of 64 bits: two vectors of each, with about eight operations to make and compare one.
    counts.vectorOps += times * (searched * 16 + k * (tiles * 2 + 6 * std::log2(width)));
    counts.vectorLoads += times * (searched + k * tiles * 2);
    return;
  }
  case LeafKind::Store: {
    double k = selects ? 1 : double(bound.valueOf(e.axes[e.numSpatial - 1].extent));
    counts.vectorLoads += times * std::ceil(k / width) * 3;
    counts.gathers += times * std::min(width, k);
    return;
  }
  default: counts.vectorOps += times * 4; return;
  }
}

} // namespace fusec::tiling

#include "Tiling/schedule/CutTiles.h"

#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::tiling {

/// True if a value that a block holds has its place further in: where that is counts the loops around it.
static bool holdsTilesInside(const BoundSchedule &bound, const LoopNode &loop) {
  return std::ranges::any_of(bound.schedule.edges, [&](const EdgeLevel &edge) {
    if (edge.level != MemLevel::Shared)
      return false;
    const std::optional<Loops> around = loopsOfEdge(bound, edge.tensor);
    return around && !around->empty() && around->back() != &loop &&
           std::ranges::find(*around, &loop) != around->end();
  });
}

int64_t pieceOfCutTile(const BoundSchedule &bound, const LoopNode &loop) {
  constexpr int64_t kLeast = 4; // elements of a tile
  constexpr double kSumsToFill =
      8; // a core adds to two vectors a cycle, and to the same one each fourth cycle
  if (loop.axis < 0 || bound.schedule.units > 1 || loop.step < kLeast ||
      (loop.kind != LoopKind::Seq && loop.kind != LoopKind::Block) ||
      bound.schedule.axes[loop.axis].extent.isConst() || holdsTilesInside(bound, loop))
    return 0;
  const int64_t piece = (loop.step + 1) / 2;
  bool sums = false;
  for (const Statement &statement : bound.statements()) {
    const auto at = std::ranges::find(statement.loops, &loop);
    if (at == statement.loops.end())
      continue;
    const Loops inside(at + 1, statement.loops.end());
    const auto isOver = [&](const LoopNode *inner) { return inner->axis == loop.axis; };
    const LoopNode *own = innermost(inside, loop.axis);
    if (std::ranges::count_if(inside, isOver) != 1 || own->kind != LoopKind::Unroll ||
        own->step != 1)
      return 0; // it would be done for each piece, or is none of the tile's elements
    double beside = 1;
    for (const LoopNode *inner : inside)
      if (inner->kind == LoopKind::Unroll && inner != own)
        beside *= bound.optTrip(*inner);
    if (statement.leaf->kind != LeafKind::Compute ||
        !bound.facts(statement.leaf->equation).reduces())
      continue;
    if (double(piece) * beside < kSumsToFill)
      return 0;
    sums = true;
  }
  return sums ? piece : 0;
}

} // namespace fusec::tiling

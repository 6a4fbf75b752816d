#include "Tiling/schedule/CutTiles.h"

#include "Tiling/schedule/StagedTile.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

/// Elements of the loops over a tile that one round of them takes: 1 for registers of one element each, a vector's
/// where lanes take them; 0 where the loops are others, and would be done for each piece.
static int64_t elementsOfRound(std::span<const LoopNode *const> inside, AxisId axis) {
  std::vector<const LoopNode *> over;
  std::ranges::copy_if(inside, std::back_inserter(over),
                       [&](const LoopNode *inner) { return inner->axis == axis; });
  if (over.empty() || over.size() > 2 || over.front()->kind != LoopKind::Unroll ||
      over.back()->step != 1)
    return 0;
  return over.size() == 1 || over.back()->kind == LoopKind::Lane ? over.front()->step : 0;
}

/// Whether sums are so short that the next piece's begin before they end.
static bool isShort(const Equation &equation) {
  constexpr int64_t kMost = 32; // additions, of which a core has several hundred under way
  DimExpr terms = 1;
  for (size_t a = equation.numSpatial; a < equation.axes.size(); ++a)
    terms = terms * equation.axes[a].extent;
  return terms.isConst() && terms.constValue() <= kMost;
}

int64_t pieceOfCutTile(const BoundSchedule &bound, const LoopNode &loop) {
  constexpr int64_t kLeast = 4; // elements of a tile
  constexpr double kSumsToFill =
      8; // a core adds to two vectors a cycle, and to the same one each fourth cycle
  if (loop.axis < 0 || bound.schedule.units > 1 || loop.step < kLeast ||
      (loop.kind != LoopKind::Seq && loop.kind != LoopKind::Block) ||
      bound.schedule.axes[loop.axis].extent.isConst() || holdsTilesInside(bound, loop))
    return 0;
  int64_t round = 0;
  double fewest = std::numeric_limits<double>::infinity(); // sums under way, of half the rounds
  bool sums = false;
  for (const Statement &statement : bound.statements()) {
    const auto at = std::ranges::find(statement.loops, &loop);
    if (at == statement.loops.end())
      continue;
    const Loops inside(at + 1, statement.loops.end());
    const int64_t own = elementsOfRound(inside, loop.axis);
    if (own == 0 || (round != 0 && own != round))
      return 0;
    round = own;
    double beside = 1;
    for (const LoopNode *inner : inside)
      if (inner->kind == LoopKind::Unroll && inner->axis != loop.axis)
        beside *= bound.optTrip(*inner);
    if (statement.leaf->kind != LeafKind::Compute ||
        !bound.facts(statement.leaf->equation).reduces())
      continue;
    sums = true;
    if (round == 1 || !isShort(bound.facts(statement.leaf->equation).equation))
      fewest = std::min(fewest, double((loop.step / round + 1) / 2) * beside);
  }
  const bool isLong = std::isfinite(fewest);
  if (!sums || loop.step <= round || (isLong && fewest < kSumsToFill))
    return 0;
  return isLong ? (loop.step / round + 1) / 2 * round : round;
}

} // namespace fusec::tiling

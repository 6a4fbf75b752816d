#pragma once
// The search of tiling expressions and tile sizes: trees, sizes, what was left out, and the best of all.
#include "Tiling/space/Volume.h"

#include <functional>

namespace fusec::tiling {

/// What each of MCFuser's rules (section III-C) left over.
struct PruningReport {
  // Expressions.
  int64_t expressions = 0; // that were listed
  int64_t classes = 0;     // rule 1: those that differ inside blocks
  int64_t withoutSums = 0; // rule 2: without tiles of partial sums of what stays inside
  int64_t sensible = 0;    // in which no equation uses what is not complete
  // Sizes: one for each loop.
  double sizes = 0;         // multiples of the steps
  double sizesUnpadded = 0; // rule 3
  // Pairs of an expression and sizes.
  double points = 0;
  int64_t tried = 0;   // all points, or what the search looked at
  int64_t fitting = 0; // rule 4, of these
  bool isExhaustive = false;
};
/// "26 expressions, 5 that differ inside blocks, ...", for explain.
std::string print(const PruningReport &report);

/// The expressions that a search knows.
struct ExpressionLimits {
  bool nests = true;       // deep and flat trees as they are written: MCFuser's space
  bool blockOrders = true; // what deep ones mean as Chimera's block execution orders
  bool bindsBlocks = true;
  bool forbidsPartialSums = false; // rule 2; else room for them is charged (VolumeRules::liveTiles)
  bool rowsFirst = true; // orders in which rows stand inside are the same once they are bound
};
constexpr ExpressionLimits kMcfuserExpressions = {true, false, true, true, false};
/// One core walks all tiles in turn: a row need not stand outside of other loops, as it does where blocks run beside
/// each other, and less may move.
constexpr ExpressionLimits kChimeraExpressions = {false, true, false, false, false};
/// Beside those that stand in front this many loops are put in all orders; of more, the first ones of the space stay
/// outside.
constexpr size_t kMostOrdered = 7;

std::vector<BoundExpression> expressionsOf(const SpaceOperands &operands,
                                           const ExpressionLimits &limits, PruningReport &report);

/// Rule 3: multiples of each loop's step that pad a power of two by nothing and another extent by less than 5 %, or by
/// the least that is possible; of those with equally many tiles the smallest. Ascending.
std::vector<std::vector<double>> sizesOf(std::span<const double> extents,
                                         std::span<const double> steps, PruningReport &report);

struct TileSearch {
  SpaceExtents extents;
  std::vector<double> steps; // by loop: of a micro-kernel; MCFuser: 16
  PlaceRules placing = {};
  VolumeRules counting = {};
  /// Rule 4: no more than this, at the greatest extents.
  double capacity = 0;
  std::function<double(const Volume &)> used = [](const Volume &v) { return v.usedBytes; };
  /// At the usual extents; positive.
  std::function<double(const Volume &)> cost = [](const Volume &v) { return v.movedBytes; };
  double mostEnumerated = 20000; // points; of more, `evaluations` are tried (Search/Evolve.h)
  int64_t evaluations = 4000;
  size_t keep = 32;
};

struct TiledExpression {
  BoundExpression expression;
  std::vector<double> tiles; // by loop
  double cost = 0;
  Volume volume; // at the usual extents
};

/// The best points of these expressions, best first; equal ones in the order of expressions and sizes. Empty where
/// nothing fits.
std::vector<TiledExpression> bestTiles(const SpaceOperands &operands,
                                       std::span<const BoundExpression> expressions,
                                       const TileSearch &search, PruningReport &report);

} // namespace fusec::tiling

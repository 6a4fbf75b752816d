#include "Tiling/space/SpaceReport.h"

#include "Tiling/space/Generate.h"
#include "Tiling/space/Tiles.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

constexpr size_t kMostTold = 2;  // the best one and the runner-up
constexpr double kStep = 16;     // of tiles, MCFuser's (section III-B)
constexpr size_t kMostLoops = 8; // more have too many orders to list

std::string tilesText(const TiledExpression &one, const SpaceOperands &operands,
                      std::span<const double> extents) {
  const std::vector<std::string> names = loopNames(operands.space);
  std::string out;
  for (size_t l = 0; l < names.size(); ++l)
    if (one.tiles[l] < extents[l])
      out += (out.empty() ? "" : ", ") + names[l] + " " +
             std::to_string(static_cast<int64_t>(one.tiles[l]));
  return out;
}

} // namespace

std::optional<SpaceReport> spaceReport(const ExprProgram &pattern, const Target &target) {
  const ScheduledProgram program(pattern);
  if (!hasTree(program, target))
    return std::nullopt;
  LoopSpace space = loopSpace(program.equations);
  if (space.loops.size() > kMostLoops)
    return std::nullopt;
  const SpaceOperands operands = spaceOperands(std::move(space), pattern);
  PruningReport pruning;
  const std::vector<BoundExpression> expressions = expressionsOf(operands, {}, pruning);
  TileSearch search;
  search.extents = spaceExtents(operands.space, pattern.symbols);
  search.steps.assign(operands.space.loops.size(), kStep);
  search.placing.stayInBlocks = search.placing.holdSums = true;
  search.capacity = double(target.sharedBytesPerBlock);
  search.keep = kMostTold;
  SpaceReport report;
  for (const TiledExpression &one : bestTiles(operands, expressions, search, pruning))
    report.best.push_back({print(one.expression, operands.space),
                           tilesText(one, operands, search.extents.usual), one.volume.movedBytes});
  report.pruning = print(pruning);
  return report;
}

} // namespace fusec::tiling

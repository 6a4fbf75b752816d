#include "Tiling/space/Volume.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace fusec::tiling {

namespace {

TileSizes sizesOf(std::span<const double> extents, std::span<const double> tiles) {
  TileSizes out;
  out.extents.assign(extents.begin(), extents.end());
  for (size_t l = 0; l < extents.size(); ++l)
    out.tiles.push_back(std::min(tiles[l], extents[l]));
  return out;
}

} // namespace

TileSizes tileSizes(std::span<const double> extents, std::span<const double> tiles) {
  TileSizes out = sizesOf(extents, tiles);
  for (size_t l = 0; l < extents.size(); ++l)
    out.trips.push_back(std::ceil(extents[l] / out.tiles[l]));
  return out;
}

TileSizes realTileSizes(std::span<const double> extents, std::span<const double> tiles) {
  TileSizes out = sizesOf(extents, tiles);
  for (size_t l = 0; l < extents.size(); ++l)
    out.trips.push_back(extents[l] / out.tiles[l]);
  return out;
}

namespace {

class VolumeCounter {
public:
  VolumeCounter(const SpaceOperands &operands, const Placement &placement, const TileSizes &sizes,
                const VolumeRules &rules)
      : operands(operands), space(operands.space), placement(placement), sizes(sizes), rules(rules),
        meanTiles(sizes.extents.size(), 1), usedAt(space.equations.size(), 0),
        usedBytesAt(space.equations.size(), 0) {}

  Volume run() {
    out.movedOf.assign(operands.operands.size(), 0);
    for (const PlacedStatement &statement : placement.statements)
      statement.kind == StatementKind::Compute ? addFlops(statement) : addMoved(statement);
    if (rules.liveTiles)
      addLive();
    else
      addOwn();
    out.used = *std::ranges::max_element(usedAt);
    out.usedBytes = *std::ranges::max_element(usedBytesAt);
    addTiles();
    return std::move(out);
  }

private:
  const SpaceOperand &operand(int index) const {
    return operands.operands[static_cast<size_t>(index)];
  }
  double trips(int loop) const { return sizes.trips[static_cast<size_t>(loop)]; }

  /// All tiles of a loop that cuts a tensor are its extent, however that is cut; of another one, tiles overlap or are
  /// the same again.
  void addMoved(const PlacedStatement &statement) {
    const SpaceOperand &own = operand(statement.operand);
    std::vector<double> &tiles = meanTiles;
    for (int loop : own.loops) {
      const size_t l = static_cast<size_t>(loop);
      tiles[l] =
          own.isCutBy(loop) ? sizes.extents[l] : std::max(1.0, sizes.extents[l] / sizes.trips[l]);
    }
    double elements = own.elements(tiles);
    for (int loop : placement.around(statement.node))
      if (!own.isCutBy(loop))
        elements *= trips(loop);
    if (own.isMade)
      elements *= rules.storeWeight;
    out.movedOf[static_cast<size_t>(statement.operand)] = elements;
    out.moved += elements;
    out.movedBytes += elements * own.elementBytes;
  }

  void addFlops(const PlacedStatement &statement) {
    const size_t e = static_cast<size_t>(statement.equation);
    double points = operands.flops[e];
    for (int loop : space.loopOf[e])
      points *= loop < 0 ? 1 : sizes.extents[static_cast<size_t>(loop)];
    for (int loop : placement.around(statement.node))
      if (space.loops[static_cast<size_t>(loop)].positions[e] < 0)
        points *= trips(loop);
    out.flops += points;
  }

  void addLive() {
    for (const TileLife &life : placement.lives) {
      double count = 1;
      for (int loop : life.tileLoops)
        count *= trips(loop);
      for (int e : life.equations)
        charge(e, operand(life.operand), count);
    }
  }

  /// One tile of what each equation reads and makes.
  void addOwn() {
    std::set<std::pair<int, TensorId>> met; // inside, by reader
    for (const SpaceOperand &own : operands.operands) {
      charge(own.equation, own, 1);
      for (const InsideRead &read : space.reads)
        if (own.isMade && read.tensor == own.tensor &&
            met.insert({read.reader, read.tensor}).second)
          charge(read.reader, own, 1);
    }
  }

  void charge(int equation, const SpaceOperand &own, double count) {
    const double elements = count * own.elements(sizes.tiles);
    usedAt[static_cast<size_t>(equation)] += elements;
    usedBytesAt[static_cast<size_t>(equation)] += elements * own.elementBytes;
  }

  void addTiles() {
    for (const SpaceOperand &own : operands.operands)
      if (own.isFirst) {
        out.tiles += own.elements(sizes.tiles);
        out.tileBytes += own.elements(sizes.tiles) * own.elementBytes;
      }
  }

  const SpaceOperands &operands;
  const LoopSpace &space;
  const Placement &placement;
  const TileSizes &sizes;
  const VolumeRules &rules;
  std::vector<double> meanTiles;           // of what a statement moves
  std::vector<double> usedAt, usedBytesAt; // by equation
  Volume out;
};

} // namespace

Volume volumeOf(const SpaceOperands &operands, const BoundExpression &expression,
                const Placement &placement, const TileSizes &sizes, const VolumeRules &rules) {
  Volume volume = VolumeCounter(operands, placement, sizes, rules).run();
  for (int loop : expression.blocks)
    volume.blocks *= sizes.trips[static_cast<size_t>(loop)];
  return volume;
}

CompulsoryVolume compulsoryVolume(const SpaceOperands &operands, std::span<const double> extents) {
  const LoopSpace &space = operands.space;
  CompulsoryVolume out;
  for (const SpaceOperand &own : operands.operands) {
    const double bytes = own.elements(extents) * own.elementBytes;
    out.apartBytes += bytes;
    if ((!own.isMade || own.isStored) && own.isFirst)
      out.fusedBytes += bytes;
    std::set<int> readers;
    for (const InsideRead &read : space.reads)
      if (own.isMade && read.tensor == own.tensor && readers.insert(read.reader).second)
        out.apartBytes += bytes;
  }
  for (size_t e = 0; e < space.equations.size(); ++e) {
    double points = operands.flops[e];
    for (int loop : space.loopOf[e])
      points *= loop < 0 ? 1 : extents[static_cast<size_t>(loop)];
    out.flops += points;
  }
  return out;
}

double mcfuserSeconds(const Volume &volume, const DeviceRates &rates, ElementsCount elements) {
  const double moved = elements == ElementsCount::AsBytes ? volume.movedBytes : volume.moved;
  const double slowdown = (volume.blocks + rates.cores) / volume.blocks;
  return (moved / rates.bytesPerSec + volume.flops / rates.flopsPerSec) * slowdown;
}

double rooflineSeconds(const Volume &volume, const DeviceRates &rates) {
  const double waves = std::ceil(volume.blocks / rates.cores) / (volume.blocks / rates.cores);
  return std::max(volume.movedBytes / rates.bytesPerSec, volume.flops / rates.flopsPerSec) * waves;
}

std::optional<double> slowestLevel(const SpaceOperands &operands, std::span<const double> extents,
                                   std::span<const LevelTiles> levels, const PlaceRules &placeRules,
                                   const VolumeRules &volumeRules) {
  const LoopSpace &space = operands.space;
  std::vector<double> outer(extents.begin(), extents.end());
  std::vector<double> runs(space.equations.size(),
                           1); // how often the level before runs each equation's tile
  double slowest = 0;
  for (const LevelTiles &level : levels) {
    const TileSizes sizes = tileSizes(outer, level.tiles);
    const Placement placement = place(operands, level.expression, sizes.trips, placeRules);
    if (!placement.whyNot.empty())
      return std::nullopt;
    const Volume volume = volumeOf(operands, level.expression, placement, sizes, volumeRules);
    if (volume.usedBytes > level.capacityBytes)
      return std::nullopt;
    double bytes = 0;
    for (size_t o = 0; o < operands.operands.size(); ++o)
      bytes += volume.movedOf[o] * operands.operands[o].elementBytes *
               runs[static_cast<size_t>(operands.operands[o].equation)];
    slowest = std::max(slowest, bytes / level.bytesPerSec);
    for (size_t e = 0; e < runs.size(); ++e)
      for (int loop : placement.around(placement.nodeOf[e]))
        runs[e] *= sizes.trips[static_cast<size_t>(loop)];
    outer = sizes.tiles;
  }
  return slowest;
}

} // namespace fusec::tiling

#pragma once
// How much a placed tree moves, holds and computes: Chimera's Algorithm 1 and MCFuser's equations (1) to (5).
#include "Tiling/space/Place.h"

#include <optional>

namespace fusec::tiling {

/// Sizes of a tiling, by loop.
struct TileSizes {
  std::vector<double> extents;
  std::vector<double> tiles; // of at most the extent
  std::vector<double> trips;
};
/// The last tile of a loop is cut where the others do not fill the extent.
TileSizes tileSizes(std::span<const double> extents, std::span<const double> tiles);
/// As if loops could run any part of a time: what Lagrange's method finds the minimum of.
TileSizes realTileSizes(std::span<const double> extents, std::span<const double> tiles);

struct VolumeRules {
  /// Charges all tiles of a value that are made before the first of them is used for the last time. Chimera's Algorithm
  /// 1 charges one, and so finds that orders are best which it has no room for.
  bool liveTiles = true;
  double storeWeight =
      1; // an element that is stored, in elements moved: 2 where partial sums are read again
};

/// Elements count once for each time that they are moved; those that blocks load which run beside each other too.
struct Volume {
  double moved = 0, movedBytes = 0; // from and to memory
  std::vector<double> movedOf;      // elements, by operand
  double used = 0, usedBytes = 0;   // of tiles at once
  double tiles = 0, tileBytes = 0;  // one tile of every tensor: MCFuser's equation (1)
  double flops = 0;                 // with what is computed again
  double blocks = 1;

  double intensity() const { return flops / movedBytes; } // flop a byte
};
Volume volumeOf(const SpaceOperands &operands, const BoundExpression &expression,
                const Placement &placement, const TileSizes &sizes, const VolumeRules &rules = {});

/// What moves at least: every element of a tensor once. As one kernel, and with one for each equation.
struct CompulsoryVolume {
  double fusedBytes = 0, apartBytes = 0;
  double flops = 0;
};
CompulsoryVolume compulsoryVolume(const SpaceOperands &operands, std::span<const double> extents);

struct DeviceRates {
  double flopsPerSec = 1, bytesPerSec = 1;
  double cores = 1;

  /// MCFuser's MBCI: memory is slower than arithmetic at so many flop a byte (section II-A).
  bool isMemoryBound(double intensity) const { return intensity < flopsPerSec / bytesPerSec; }
};

/// MCFuser's estimate, equations (2) to (5): memory and arithmetic in turn, longer with few blocks. As printed, an
/// element counts as a byte.
enum class ElementsCount : uint8_t { AsBytes, AsPrinted };
double mcfuserSeconds(const Volume &volume, const DeviceRates &rates,
                      ElementsCount elements = ElementsCount::AsBytes);
/// Memory or arithmetic, whichever takes longer, in full waves of blocks.
double rooflineSeconds(const Volume &volume, const DeviceRates &rates);

/// The tiles of one memory, into which they come from the one before.
struct LevelTiles {
  BoundExpression expression;
  std::vector<double> tiles;
  double capacityBytes = 0;
  double bytesPerSec = 1;
};
/// Chimera's equation (3): the time of the slowest of several memories, outermost first; each one's tiles are cut out
/// of those of the one before. nullopt where one holds too little, or where a tree makes no sense.
std::optional<double> slowestLevel(const SpaceOperands &operands, std::span<const double> extents,
                                   std::span<const LevelTiles> levels,
                                   const PlaceRules &placeRules = {},
                                   const VolumeRules &volumeRules = {});

} // namespace fusec::tiling

#pragma once
// Tile sizes by Lagrange's method: where a search of many begins.
#include "Tiling/space/Volume.h"

#include <functional>

namespace fusec::tiling {

/// The sizes, as real numbers, at which a tree moves the least while what it uses is no more than `capacity` (Chimera,
/// section IV-B). There a longer tile of one loop saves as much for the room that it takes as of any other:
///
///     d ln(moved) / d ln(T[l]) = lambda * d ln(used) / d ln(T[l])
///
/// Loops that move nothing more often when their tiles are short have those of `least`: Chimera's alpha. nullopt where
/// these do not fit.
std::optional<std::vector<double>>
lagrangeTiles(std::span<const double> extents, std::span<const double> least, double capacity,
              const std::function<double(std::span<const double> tiles)> &moved,
              const std::function<double(std::span<const double> tiles)> &used);

/// The two for a tree, with trips as real numbers; nullopt where it makes no sense.
struct RealVolume {
  std::function<double(std::span<const double> tiles)> movedBytes, usedBytes;
};
std::optional<RealVolume> realVolume(const SpaceOperands &operands,
                                     const BoundExpression &expression,
                                     std::span<const double> extents, const PlaceRules &placeRules,
                                     const VolumeRules &volumeRules);

} // namespace fusec::tiling

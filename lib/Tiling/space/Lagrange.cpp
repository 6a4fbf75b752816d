#include "Tiling/space/Lagrange.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace fusec::tiling {

namespace {

using Sizes = std::vector<double>;
using Measure = std::function<double(std::span<const double> tiles)>;

constexpr int kHalvings = 60;  // of an interval: a double's precision
constexpr int kRounds = 16;    // of the condition; each one halves what is left, about
constexpr double kStep = 1e-4; // of a derivative

class LagrangeSolver {
public:
  LagrangeSolver(std::span<const double> extents, std::span<const double> least, double capacity,
                 const Measure &moved, const Measure &used)
      : extents(extents), capacity(capacity), moved(moved), used(used) {
    for (size_t l = 0; l < extents.size(); ++l)
      lower.push_back(std::min(least[l], extents[l]));
  }

  std::optional<Sizes> run() {
    if (used(lower) > capacity)
      return std::nullopt;
    for (size_t l = 0; l < lower.size(); ++l) {
      Sizes longer = lower;
      longer[l] = std::min(2 * lower[l], extents[l]);
      if (moved(longer) < moved(lower))
        loops.push_back(l);
    }
    // Equal sizes at first: where the volumes are symmetric, the condition holds for them.
    Sizes direction = lower;
    for (size_t l : loops)
      direction[l] = 1;
    Sizes tiles = filled(direction);
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<double> shares = gains(tiles);
      if (shares.empty())
        break;
      for (size_t i = 0; i < loops.size(); ++i)
        direction[loops[i]] = tiles[loops[i]] * std::sqrt(shares[i]);
      tiles = filled(direction);
    }
    return tiles;
  }

private:
  /// As large as fits in this direction.
  Sizes filled(const Sizes &direction) const {
    double longest = 1;
    for (size_t l : loops)
      longest = std::max(longest, extents[l] / direction[l]);
    double below = 0, above = longest;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (below + above) / 2;
      (used(scaled(direction, middle)) <= capacity ? below : above) = middle;
    }
    return scaled(direction, used(scaled(direction, longest)) <= capacity ? longest : below);
  }

  Sizes scaled(const Sizes &direction, double factor) const {
    Sizes tiles = lower;
    for (size_t l : loops)
      tiles[l] = std::clamp(direction[l] * factor, lower[l], extents[l]);
    return tiles;
  }

  static double slope(const Measure &measure, const Sizes &tiles, size_t l) {
    Sizes shorter = tiles, longer = tiles;
    shorter[l] *= 1 - kStep;
    longer[l] *= 1 + kStep;
    return std::log(measure(longer) / measure(shorter));
  }

  /// By loop: what a longer tile saves for what it takes. Empty where one of them takes nothing.
  std::vector<double> gains(const Sizes &tiles) const {
    std::vector<double> out;
    for (size_t l : loops) {
      const double saves = -slope(moved, tiles, l), takes = slope(used, tiles, l);
      if (saves <= 0 || takes <= 0)
        return {};
      out.push_back(saves / takes);
    }
    return out;
  }

  const std::span<const double> extents;
  const double capacity;
  const Measure &moved, &used;
  Sizes lower;
  std::vector<size_t> loops; // whose tiles are worth room
};

} // namespace

std::optional<std::vector<double>> lagrangeTiles(std::span<const double> extents,
                                                 std::span<const double> least, double capacity,
                                                 const Measure &moved, const Measure &used) {
  return LagrangeSolver(extents, least, capacity, moved, used).run();
}

std::optional<RealVolume> realVolume(const SpaceOperands &operands,
                                     const BoundExpression &expression,
                                     std::span<const double> extents, const PlaceRules &placeRules,
                                     const VolumeRules &volumeRules) {
  PlaceRules all = placeRules;
  all.dropLoopsThatRunOnce = false; // a formula for all sizes
  const auto placement =
      std::make_shared<const Placement>(place(operands, expression, extents, all));
  if (!placement->whyNot.empty())
    return std::nullopt;
  auto measure = [&operands, expression, placement, volumeRules,
                  whole = Sizes(extents.begin(), extents.end())](std::span<const double> tiles,
                                                                 double Volume::*field) {
    return volumeOf(operands, expression, *placement, realTileSizes(whole, tiles), volumeRules).*
           field;
  };
  return RealVolume{
      [measure](std::span<const double> tiles) { return measure(tiles, &Volume::movedBytes); },
      [measure](std::span<const double> tiles) { return measure(tiles, &Volume::usedBytes); }};
}

} // namespace fusec::tiling

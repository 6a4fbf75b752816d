#include "Tiling/space/Tiles.h"

#include "Search/Evolve.h"
#include "Tiling/space/Lagrange.h"
#include "Tiling/space/Trees.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fusec::tiling {

std::vector<BoundExpression> expressionsOf(const SpaceOperands &operands,
                                           const ExpressionLimits &limits, PruningReport &report) {
  const LoopSpace &space = operands.space;
  std::vector<int> outer;
  if (limits.rowsFirst)
    outer = space.rows;
  for (size_t l = 0; space.loops.size() - outer.size() > kMostOrdered; ++l)
    if (!std::ranges::count(outer, static_cast<int>(l)))
      outer.push_back(static_cast<int>(l));
  const std::vector<Expression> deep = deepTrees(space, outer);
  std::vector<Expression> listed;
  if (limits.nests) {
    listed = deep;
    std::ranges::move(flatTrees(space, outer), std::back_inserter(listed));
  }
  if (limits.blockOrders)
    for (const Expression &order : deep) {
      std::vector<int> loops;
      for (const Expression::Node &node : order.nodes)
        loops.push_back(node.loop);
      listed.push_back(canonical(blockOrder(loops, space), space));
    }
  report.expressions = static_cast<int64_t>(listed.size());

  std::set<BoundExpression> classes;
  for (const Expression &one : listed)
    classes.insert(limits.bindsBlocks ? bindBlocks(one, space) : BoundExpression{{}, one});
  report.classes = static_cast<int64_t>(classes.size());
  if (limits.forbidsPartialSums)
    std::erase_if(classes,
                  [&](const BoundExpression &one) { return holdsPartialSums(one, space); });
  report.withoutSums = static_cast<int64_t>(classes.size());
  // A tree that makes no sense makes some where a loop runs once; then it is another one of these.
  const std::vector<double> trips(space.loops.size(), 2);
  std::erase_if(classes, [&](const BoundExpression &one) {
    return !place(operands, one, trips).whyNot.empty();
  });
  report.sensible = static_cast<int64_t>(classes.size());
  // Simple ones first: where loops run once, several are the same, and the first one is taken.
  std::vector<BoundExpression> sorted(classes.begin(), classes.end());
  std::ranges::stable_sort(sorted, {},
                           [](const BoundExpression &one) { return one.inner.nodes.size(); });
  return sorted;
}

namespace {

bool isPowerOfTwo(double value) { return std::exp2(std::floor(std::log2(value))) == value; }

constexpr double kMostPadding = 0.05; // of an extent that is no power of two

} // namespace

std::vector<std::vector<double>> sizesOf(std::span<const double> extents,
                                         std::span<const double> steps, PruningReport &report) {
  std::vector<std::vector<double>> all;
  report.sizes = report.sizesUnpadded = 1;
  for (size_t l = 0; l < extents.size(); ++l) {
    const double extent = extents[l], step = steps[l], count = std::ceil(extent / step);
    auto paddingOf = [&](double size) { return std::ceil(extent / size) * size / extent - 1; };
    double least = paddingOf(step);
    std::vector<double> sizes; // the smallest ones of their number of tiles
    for (double trips = count; trips >= 1; trips = std::ceil(extent / sizes.back()) - 1) {
      sizes.push_back(std::ceil(extent / trips / step) * step);
      least = std::min(least, paddingOf(sizes.back()));
    }
    const double most = isPowerOfTwo(extent) ? 0 : kMostPadding;
    std::erase_if(sizes, [&](double size) {
      const double padding = paddingOf(size);
      return padding > least && (most == 0 ? padding > 0 : padding >= most);
    });
    report.sizes *= count;
    report.sizesUnpadded *= static_cast<double>(sizes.size());
    all.push_back(std::move(sizes));
  }
  return all;
}

namespace {

/// Volumes of one expression; statements move when other loops run once.
class ExpressionVolumes {
public:
  ExpressionVolumes(const SpaceOperands &operands, const BoundExpression &expression,
                    const TileSearch &search)
      : operands(operands), expression(expression), search(search) {}

  std::optional<Volume> at(std::span<const double> extents, std::span<const double> tiles) {
    const TileSizes sizes = tileSizes(extents, tiles);
    std::vector<bool> once;
    for (double trips : sizes.trips)
      once.push_back(trips == 1);
    auto [known, isNew] = placements.try_emplace(std::move(once));
    if (isNew)
      known->second = place(operands, expression, sizes.trips, search.placing);
    if (!known->second.whyNot.empty())
      return std::nullopt;
    return volumeOf(operands, expression, known->second, sizes, search.counting);
  }

private:
  const SpaceOperands &operands;
  const BoundExpression &expression;
  const TileSearch &search;
  std::map<std::vector<bool>, Placement> placements; // by which loops run once
};

class TileSearcher {
public:
  TileSearcher(const SpaceOperands &operands, std::span<const BoundExpression> expressions,
               const TileSearch &search, PruningReport &report)
      : operands(operands), expressions(expressions), search(search), report(report),
        sizes(sizesOf(search.extents.usual, search.steps, report)) {
    for (const BoundExpression &one : expressions)
      volumes.emplace_back(operands, one, search);
    choices.push_back({static_cast<int>(expressions.size()), false});
    for (const std::vector<double> &own : sizes)
      choices.push_back({static_cast<int>(own.size()), true});
  }

  std::vector<TiledExpression> run() {
    report.points = static_cast<double>(expressions.size()) * report.sizesUnpadded;
    report.isExhaustive = report.points <= search.mostEnumerated;
    std::vector<search::Scored> best;
    if (report.isExhaustive) {
      best = enumerated();
    } else {
      search::Budget budget(search.evaluations);
      best = search::evolve(
          choices, seeds(), [&](const search::Genome &genome) { return score(genome); },
          {.keep = search.keep}, budget);
    }
    std::vector<TiledExpression> out;
    for (const search::Scored &one : best)
      out.push_back({expressions[static_cast<size_t>(one.genome[0])], tilesOf(one.genome),
                     one.score,
                     *volumes[static_cast<size_t>(one.genome[0])].at(search.extents.usual,
                                                                     tilesOf(one.genome))});
    return out;
  }

private:
  std::vector<double> tilesOf(const search::Genome &genome) const {
    std::vector<double> tiles;
    for (size_t l = 0; l < sizes.size(); ++l)
      tiles.push_back(sizes[l][static_cast<size_t>(genome[l + 1])]);
    return tiles;
  }

  std::optional<double> score(const search::Genome &genome) {
    ++report.tried;
    ExpressionVolumes &own = volumes[static_cast<size_t>(genome[0])];
    const std::vector<double> tiles = tilesOf(genome);
    const std::optional<Volume> greatest = own.at(search.extents.greatest, tiles);
    if (!greatest || search.used(*greatest) > search.capacity)
      return std::nullopt;
    ++report.fitting;
    const std::optional<Volume> usual = own.at(search.extents.usual, tiles);
    return usual ? std::optional(search.cost(*usual)) : std::nullopt;
  }

  std::vector<search::Scored> enumerated() {
    std::vector<search::Scored> all;
    search::Genome genome(choices.size(), 0);
    for (bool more = !expressions.empty(); more;) {
      if (const std::optional<double> value = score(genome))
        all.push_back({genome, *value});
      more = false;
      for (size_t place = genome.size(); place-- > 0 && !more;) {
        more = ++genome[place] < choices[place].options;
        if (!more)
          genome[place] = 0;
      }
    }
    std::ranges::stable_sort(all, {}, &search::Scored::score);
    all.resize(std::min(all.size(), search.keep));
    return all;
  }

  /// What Lagrange's method finds for each expression, rounded down, and with one loop at a time a size up.
  std::vector<search::Genome> seeds() const {
    std::vector<search::Genome> out;
    for (size_t e = 0; e < expressions.size(); ++e) {
      const std::optional<RealVolume> real = realVolume(
          operands, expressions[e], search.extents.usual, search.placing, search.counting);
      if (!real)
        continue;
      const auto tiles = lagrangeTiles(search.extents.usual, search.steps, search.capacity,
                                       real->movedBytes, real->usedBytes);
      if (!tiles)
        continue;
      search::Genome genome = {static_cast<int>(e)};
      for (size_t l = 0; l < sizes.size(); ++l) {
        const auto above = std::ranges::upper_bound(sizes[l], (*tiles)[l]);
        genome.push_back(std::max(0, static_cast<int>(above - sizes[l].begin()) - 1));
      }
      out.push_back(genome);
      for (size_t place = 1; place < genome.size(); ++place)
        if (genome[place] + 1 < choices[place].options) {
          out.push_back(genome);
          ++out.back()[place];
        }
    }
    return out;
  }

  const SpaceOperands &operands;
  const std::span<const BoundExpression> expressions;
  const TileSearch &search;
  PruningReport &report;
  const std::vector<std::vector<double>> sizes; // by loop
  std::vector<ExpressionVolumes> volumes;       // by expression
  std::vector<search::Choice> choices;          // an expression, then a size of each loop
};

} // namespace

std::vector<TiledExpression> bestTiles(const SpaceOperands &operands,
                                       std::span<const BoundExpression> expressions,
                                       const TileSearch &search, PruningReport &report) {
  return TileSearcher(operands, expressions, search, report).run();
}

std::string print(const PruningReport &report) {
  auto number = [](double value) { return std::to_string(static_cast<int64_t>(value)); };
  return number(static_cast<double>(report.expressions)) + " expressions, " +
         std::to_string(report.classes) + " that differ inside blocks, " +
         std::to_string(report.withoutSums) + " without tiles of partial sums, " +
         std::to_string(report.sensible) + " sensible; " + number(report.sizes) + " sizes, " +
         number(report.sizesUnpadded) + " with little padding; " + number(report.points) +
         " points, " + std::to_string(report.tried) + (report.isExhaustive ? " (all)" : "") +
         " tried, " + std::to_string(report.fitting) + " that fit";
}

} // namespace fusec::tiling

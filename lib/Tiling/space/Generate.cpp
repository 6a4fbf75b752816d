#include "Tiling/space/Generate.h"

#include "Expr/transforms/Profile.h"
#include "Tiling/candidates/ContractionRoles.h"
#include "Tiling/candidates/RegisterTiles.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/space/OneContraction.h"
#include "Tiling/space/TreeBuilder.h"

#include <algorithm>

namespace fusec::tiling {

namespace {

constexpr size_t kMostTiles =
    2; // sets of register tiles, each nest its own, and as many of one for all
constexpr int64_t kNeighbours = 4; // columns of a lane on a GPU, as a vector
constexpr size_t kMostStreams = 5; // sets of nests that sum in their own loop: all of four nests
constexpr size_t kMostBlocks = 4;  // sizes of a block's rows, the best by volume

/// Whether no nest in front of the last one, a contraction, has a loop over its columns.
bool lastColumnsAreOwn(const std::vector<SpaceNest> &nests) {
  const SpaceNest &last = nests.back();
  return last.tiled && std::ranges::all_of(nests, [&](const SpaceNest &nest) {
           return &nest == &last || (!std::ranges::count(nest.spatial, last.spatial.back()) &&
                                     !std::ranges::count(nest.reduced, last.spatial.back()));
         });
}

/// Whether the only sum with columns stands behind everything else, which is made for all of its columns.
bool endsInProduct(const std::vector<SpaceNest> &nests) {
  return lastColumnsAreOwn(nests) &&
         std::none_of(nests.begin(), nests.end() - 1,
                      [](const SpaceNest &nest) { return nest.tiled; }) &&
         nests.back().spatial.size() == 1 && nests.back().reduced.size() == 1;
}

class TreeGenerator {
public:
  TreeGenerator(const ScheduledProgram &program, const Target &target)
      : program(program), target(target), tree(program, target.blocksHaveUnits()),
        space(tree.space), nests(tree.nests), rowAxes(tree.rowAxes) {}

  std::vector<Schedule> run() {
    if (rowAxes.empty())
      thinShapes();
    else if (target.blocksHaveUnits())
      gpuShapes();
    else
      cpuShapes();
    return std::move(out);
  }

private:
  double points(const SpaceNest &nest) const {
    double product = 1;
    for (const std::vector<int> *loops : {&nest.spatial, &nest.reduced})
      for (int l : *loops)
        product *= double(tree.opt(l));
    return product;
  }

  /// The tree, and the same with the last columns over blocks where the rows do not give every core one.
  bool addBoth(TreeShape shape) {
    bool any = add(shape);
    for (int64_t columns : columnsOverBlocks(shape)) {
      shape.columns = columns;
      any = add(shape) || any;
    }
    return any;
  }

  /// Columns of a block: so many that each core has a block, or half of them; no less than a register tile.
  std::vector<int64_t> columnsOverBlocks(const TreeShape &shape) const {
    if (!lastColumnsAreOwn(nests))
      return {};
    const int n = nests.back().spatial.back();
    int64_t blocks = (tree.countOf(rowAxes.back()) + shape.rows - 1) / shape.rows;
    for (size_t r = 0; r + 1 < rowAxes.size(); ++r)
      blocks *= tree.countOf(rowAxes[r]);
    const int64_t tile = shape.tileOf(nests.size() - 1).vectors * target.lanes;
    std::vector<int64_t> found;
    for (int64_t wanted = (target.cores + blocks - 1) / blocks; wanted > 1 && found.size() < 2;
         wanted = (wanted + 1) / 2) {
      const int64_t columns = roundUp((tree.opt(n) + wanted - 1) / wanted, tile);
      if (columns < tree.opt(n) && (found.empty() || found.back() != columns))
        found.push_back(columns);
    }
    return found;
  }

  /// With room for everything at once only where a block has none for what is live at the same time: then less is
  /// staged, or kept in the block's memory.
  bool add(TreeShape shape) {
    std::optional<Schedule> made = build(shape);
    if (made && !hasRoom(*made)) {
      shape.room = target.sharedBytesPerBlock;
      made = build(shape);
    }
    if (!made || !hasRoom(*made))
      return false;
    out.push_back(std::move(*made));
    return true;
  }
  bool hasRoom(const Schedule &schedule) const {
    return storageOf({schedule, program}).sharedBytes <= double(target.sharedBytesPerBlock);
  }
  std::optional<Schedule> build(const TreeShape &shape) const {
    return TreeBuilder(tree, target, shape).build();
  }

  /// Register tiles by nest, with rows that divide those of a block.
  struct NestTiles {
    int64_t rows; // that a block has a multiple of
    std::vector<RegisterTile> tiles;
    double cycles; // of all nests
  };

  /// The tiles that take the least time, each nest its own, since the scores of attention have other columns than what
  /// is summed with them; then those that suit the nest with most of the work, for all nests.
  std::vector<NestTiles> tilesOfNests() const {
    constexpr int64_t kMostRows = 48; // more of a block are multiples of these
    std::vector<std::vector<RankedTile>> ranked(nests.size());
    std::vector<double> times(nests.size(),
                              0); // terms of a sum, and sums outside of the tiles' domain
    for (size_t n = 0; n < nests.size(); ++n)
      if (nests[n].tiled) {
        const View view = viewOf(nests[n]);
        const Roles roles = rolesOf(view);
        ranked[n] = registerTiles(view, roles);
        times[n] = 1;
        for (int l : nests[n].reduced)
          times[n] *= double(tree.opt(l));
        for (int g : roles.blocks)
          times[n] *= double(view.opt(view.spatial[static_cast<size_t>(g)]));
      }
    std::vector<NestTiles> all;
    auto add = [&](NestTiles own) {
      if (!std::ranges::count(all, own.tiles, &NestTiles::tiles))
        all.push_back(std::move(own));
    };
    for (int64_t rows = 1; rows <= kMostRows; ++rows) {
      NestTiles own{rows, {}, 0};
      for (size_t n = 0; n < nests.size(); ++n) {
        own.tiles.push_back({1, 1}); // plain nests have none
        if (!nests[n].tiled)
          continue;
        const auto best = std::ranges::find_if(
            ranked[n], [&](const RankedTile &one) { return rows % one.tile.rows == 0; });
        own.tiles[n] = best->tile;
        own.cycles += best->cycles * times[n];
      }
      add(std::move(own));
    }
    std::ranges::stable_sort(all, {}, &NestTiles::cycles);
    all.resize(std::min(all.size(), kMostTiles));
    const std::vector<RankedTile> &ofHeaviest = ranked[heaviestNest()];
    for (size_t t = 0; t < std::min(ofHeaviest.size(), kMostTiles); ++t) {
      NestTiles common{ofHeaviest[t].tile.rows, {}, 0};
      for (const SpaceNest &nest : nests)
        common.tiles.push_back(nest.tiled ? ofHeaviest[t].tile : RegisterTile{1, 1});
      add(std::move(common));
    }
    return all;
  }

  size_t heaviestNest() const {
    size_t heaviest = nests.size();
    for (size_t n = 0; n < nests.size(); ++n)
      if (nests[n].tiled &&
          (heaviest == nests.size() || points(nests[n]) > points(nests[heaviest])))
        heaviest = n;
    return heaviest;
  }

  /// The contraction of a tiled nest, inside the rows that a block has one of.
  View viewOf(const SpaceNest &nest) const {
    const int main = nest.equations[0];
    std::vector<int> without;
    for (size_t r = 0; r + 1 < rowAxes.size(); ++r)
      for (int l : rowAxes[r])
        without.push_back(tree.positionOf(l, main));
    return makeView(program, target, main, -1, without);
  }

  /// Bytes of what products read from outside for each block again.
  double rereadBytes() const {
    double bytes = 0;
    for (const SpaceNest &nest : nests) {
      if (!nest.tiled)
        continue;
      const EquationFacts &facts = tree.facts(nest.equations[0]);
      for (size_t r = 0; r < facts.reads.size(); ++r) {
        auto depends = [&](int l) { return tree.depends(nest.equations[0], r, l); };
        double elements = double(program.bytesOf(facts.tensors[r]));
        for (const std::vector<int> *loops : {&nest.spatial, &nest.reduced})
          for (int l : *loops)
            if (depends(l))
              elements *= double(tree.opt(l));
        const bool ofRows = std::ranges::any_of(rowAxes.back(), depends);
        bytes += ofRows ? 0 : elements;
      }
    }
    return bytes;
  }

  /// Operations of a row, at the rate of a core.
  double secondsOfRow() const {
    double flops = 0;
    for (const SpaceNest &nest : nests)
      flops += nest.tiled ? 2 * points(nest) : 0;
    return flops / target.flopsPerSec; // a CPU's is that of a core
  }

  /// Seconds by volume: the arithmetic of the core with most blocks, and what each of its blocks brings in again.
  /// `others`: blocks of the rows around.
  double volumeSeconds(int64_t block, int64_t others) const {
    const int64_t blocks = others * ((tree.countOf(rowAxes.back()) + block - 1) / block),
                  ofCore = (blocks + target.cores - 1) / target.cores;
    const double again = rereadBytes();
    return double(ofCore) *
           (double(block) * secondsOfRow() + (again > double(target.memory[1].capacityBytes)
                                                  ? again / target.core.rereadBytesPerSec
                                                  : 0));
  }

  void cpuShapes() {
    const int64_t rows = tree.countOf(rowAxes.back());
    int64_t others = 1;
    for (size_t r = 0; r + 1 < rowAxes.size(); ++r)
      others *= tree.countOf(rowAxes[r]);
    for (const NestTiles &own : tilesOfNests()) {
      // Rows in parts of equal size; of equally fast ones the smaller blocks, which leave more of a cache.
      std::vector<std::pair<double, int64_t>> blocks;
      for (int64_t parts = 1, last = 0;; parts *= 2) {
        const int64_t block = roundUp((rows + parts - 1) / parts, own.rows);
        if (block != last)
          blocks.emplace_back(volumeSeconds(block, others), block);
        if (block == own.rows)
          break;
        last = block;
      }
      std::ranges::sort(blocks);
      size_t met = 0;
      for (const auto &[seconds, block] : blocks)
        if (met < kMostBlocks && addBoth({.rows = block, .tiles = own.tiles}))
          ++met;
    }
  }

  /// Sets of nests that make what they sum in their own loop: that is one tiled nest in front of them, which is read by
  /// them alone, and which takes nothing from a loop of its own.
  std::vector<std::set<size_t>> streams() const {
    std::vector<std::set<size_t>> sets = {{}};
    for (size_t n = 1; n < nests.size(); ++n) {
      if (!canStream(n))
        continue;
      const size_t known = sets.size();
      for (size_t s = 0; s < known && sets.size() < kMostStreams; ++s)
        if (!sets[s].contains(n - 1)) {
          sets.push_back(sets[s]);
          sets.back().insert(n);
        }
    }
    return sets;
  }

  bool canStream(size_t n) const {
    const SpaceNest &nest = nests[n], &source = nests[n - 1];
    if (!nest.tiled || !source.tiled || nest.reduced.size() != 1 ||
        source.spatial != nest.reduced || nest.spatial.size() != 1)
      return false;
    return std::ranges::all_of(space.reads, [&](const InsideRead &read) {
      const bool inside = std::ranges::count(source.equations, read.reader) != 0;
      // What it reads at other points, too, other turns of its loop make.
      return !std::ranges::count(source.equations, read.maker) || inside ||
             (read.reader == nest.equations[0] &&
              std::ranges::all_of(read.own, [](bool own) { return own; }));
    });
  }

  /// Few rows and one contraction, behind everything else: its sums in parts.
  void thinShapes() {
    if (!endsInProduct(nests))
      return;
    const SpaceNest &last = nests.back();
    const View view = viewOf(last);
    const int main = last.equations[0];
    std::vector<int> rowPositions;
    if (!rowAxes.empty())
      for (int l : rowAxes.back())
        rowPositions.push_back(tree.positionOf(l, main));
    // What lanes and rows are by the operands has to be what the tree's loops make of them.
    const ContractionRoles roles(view);
    const AxisGroups columns = {{tree.positionOf(last.spatial.back(), main)}};
    if (!roles.outside.empty() || roles.columns != columns || flat(roles.rows) != rowPositions)
      return;
    const int64_t rows = rowAxes.empty() ? 1 : tree.countOf(rowAxes.back());
    for (const ThinTile &tile : thinTiles(view))
      add({.rows = rows,
           .tile = {rows, 1},
           .columns = tile.neighbours * target.lanes,
           .thin = tile});
  }

  void gpuShapes() {
    thinShapes();
    const int units = target.unitsOf(TreeBuilder::kThreads);
    const int64_t rows = tree.countOf(rowAxes.back());
    for (const std::set<size_t> &streamed : streams())
      for (int64_t perUnit : {8, 4, 2, 1}) {
        if (perUnit > 1 && units * perUnit > 2 * rows)
          continue;
        // A lane has columns side by side, which it reads and writes at once, or one or two that lie apart.
        TreeShape shape{.rows = units * perUnit,
                        .tile = {perUnit, 1},
                        .depth = target.lanes,
                        .neighbours = kNeighbours,
                        .wideRows = true,
                        .streamed = streamed};
        addBoth(shape);
        if (perUnit >= 4 && !streamed.empty()) {
          shape.partsOfTurn = true;
          addBoth(shape);
          shape.partsOfTurn = false;
        }
        if (perUnit == 8) // registers have room for no more columns
          continue;
        shape.neighbours = 1;
        shape.wideRows = false;
        if (perUnit == 1)
          addBoth(shape);
        shape.tile.vectors = 2;
        shape.depth = target.lanes / 2;
        addBoth(shape);
      }
  }

  const ScheduledProgram &program;
  const Target &target;
  const TreeSpace tree;
  const LoopSpace &space;
  const std::vector<SpaceNest> &nests;
  const AxisGroups &rowAxes;
  std::vector<Schedule> out;
};

} // namespace

bool hasSeveralContractions(const std::vector<const Equation *> &equations) {
  return std::ranges::count_if(equations, [](const Equation *e) { return isContraction(*e); }) > 1;
}

bool hasTree(const ScheduledProgram &program, const Target &target) {
  if (program.scan || program.equations.size() < 2 ||
      std::ranges::none_of(program.equations, [](const Equation *e) { return sharesFactor(*e); }))
    return false;
  const LoopSpace space = loopSpace(program.equations);
  if (!whyNoNest(space).empty())
    return false;
  const std::vector<SpaceNest> nests = spaceNests(space);
  if (space.rows.empty()) // a matrix times one row, of which a GPU's blocks share the columns
    return target.blocksHaveUnits() && nests.size() > 1 && endsInProduct(nests);
  if (std::ranges::none_of(program.equations, [](const Equation *e) { return isContraction(*e); }))
    return false;
  auto nestOf = [&](int equation) {
    return std::ranges::find_if(nests, [&](const SpaceNest &nest) {
      return std::ranges::count(nest.equations, equation) != 0;
    });
  };
  // Products side by side are no tree, nor are those that a map puts into one tensor: alternatives make one of them. A
  // product and what finishes it are one nest.
  return std::ranges::any_of(space.reads, [&](const InsideRead &read) {
    const auto maker = nestOf(read.maker), reader = nestOf(read.reader);
    return maker != reader && (reader->tiled || (maker->tiled && !reader->reduced.empty()));
  });
}

std::vector<Schedule> treeCandidates(const ScheduledProgram &program, const Target &target) {
  if (isOneContraction(program))
    return contractionCandidates(program, target);
  return hasTree(program, target) ? TreeGenerator(program, target).run() : std::vector<Schedule>{};
}

} // namespace fusec::tiling

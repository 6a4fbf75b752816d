// The search of expressions and tile sizes: what each of MCFuser's rules leaves, and that the best point is found.
#include "Tiling/space/Tiles.h"
#include "Chains.h"
#include "Tiling/space/OuterProduct.h"
#include "Tiling/space/Trees.h"

#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <cmath>
#include <map>
#include <random>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

constexpr ExpressionLimits kPaper = {.nests = true,
                                     .blockOrders = false,
                                     .bindsBlocks = true,
                                     .forbidsPartialSums = true,
                                     .rowsFirst = false};

TileSearch searchOf(const ChainSpace &chain, double step, double capacity) {
  return {.extents = spaceExtents(chain.space, chain.program.symbols),
          .steps = std::vector<double>(chain.space.loops.size(), step),
          .capacity = capacity};
}

std::vector<std::string> printed(const std::vector<BoundExpression> &all, const LoopSpace &space) {
  std::vector<std::string> texts;
  for (const BoundExpression &one : all)
    texts.push_back(print(one, space));
  std::ranges::sort(texts);
  return texts;
}

} // namespace

TEST_CASE("MCFuser's rules on its chain: 109 051 904 candidates, of which 3195 are left") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  PruningReport report;
  const std::vector<BoundExpression> expressions = expressionsOf(chain.operands, kPaper, report);
  CHECK(report.expressions == 26);
  CHECK(report.classes == 5);
  CHECK(report.withoutSums == 3);
  CHECK(report.sensible == 3);
  CHECK(printed(expressions, chain.space) ==
        std::vector<std::string>{"m(n(k,h))", "m(nh(k,.))", "mh(n(k,.))"});

  TileSearch search = searchOf(chain, 16, 1.2 * 163 * 1024);
  search.used = [](const Volume &v) {
    return v.tiles;
  }; // equation (1) as printed: elements against bytes
  CHECK(!bestTiles(chain.operands, expressions, search, report).empty());
  CHECK(static_cast<double>(report.expressions) * report.sizes == 109051904);
  CHECK(report.sizes == 4194304);
  CHECK(report.sizesUnpadded == 1764);
  CHECK(std::round(1e5 * (1 - report.sizesUnpadded / report.sizes)) == 99958);
  CHECK(report.points == 5292);
  CHECK(report.isExhaustive);
  CHECK(report.tried == 5292);
  CHECK(report.fitting == 3 * 1065);
  CHECK(report.fitting == 3195);
  CHECK(std::round(1000 * (1 - 1065.0 / 1764)) == 396); // the paper's "40 %"
  CHECK(print(report) ==
        "26 expressions, 5 that differ inside blocks, 3 without tiles of partial sums, 3 sensible; "
        "4194304 sizes, 1764 with little padding; 5292 points, 5292 (all) tried, 3195 that fit");

  // In bytes of f16: an A100, an RTX 3080, an H100.
  search.used = [](const Volume &v) { return v.tileBytes; };
  for (const auto &[kilobytes, fitting] : {std::pair(163, 751), {99, 554}, {227, 887}}) {
    PruningReport own;
    search.capacity = 1.2 * kilobytes * 1024;
    bestTiles(chain.operands, expressions, search, own);
    CHECK(own.fitting == 3 * fitting);
  }
}

TEST_CASE("All spaces together hold MCFuser's and Chimera's") {
  const ChainSpace chain(mcfuserChain(1024, 1024, 512, 512));
  PruningReport report;
  const std::vector<std::string> full =
      printed(expressionsOf(chain.operands, {}, report), chain.space);
  CHECK(report.expressions == 6 + 1 + 6); // rows first
  CHECK(full == std::vector<std::string>{"m(kn,hn)", "m(kn,nh)", "m(n(k,h))", "m(nh(k,.))",
                                         "m(nk,hn)", "mh(n(k,.))"});
  const std::vector<std::string> chimera =
      printed(expressionsOf(chain.operands, kChimeraExpressions, report), chain.space);
  CHECK(report.expressions == 24);
  CHECK(chimera.size() == 18); // orders of private loops behind each other do not matter
  CHECK(std::ranges::count(chimera, "mn(k,h)") == 1);
}

TEST_CASE(
    "Sizes are multiples of a step, without padding of powers of two, and of little padding else") {
  PruningReport report;
  const std::array extents = {64.0, 100.0, 17.0, 1.0, 96.0};
  const std::array steps = {16.0, 16.0, 16.0, 1.0, 1.0};
  const std::vector<std::vector<double>> sizes = sizesOf(extents, steps, report);
  CHECK(sizes[0] == std::vector<double>{16, 32, 64});
  CHECK(sizes[1] == std::vector<double>{16, 112}); // 100 becomes 112 at the least: 12 %
  CHECK(sizes[2] == std::vector<double>{16, 32});  // 32 both
  CHECK(sizes[3] == std::vector<double>{1});
  // Of those with equally many tiles the smallest, as 14 of 7 tiles.
  CHECK(sizes[4] ==
        std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 48, 96});
  CHECK(report.sizes == 4.0 * 7 * 2 * 1 * 96);
}

namespace {

/// Another count of the same, from the loops of the two products alone: it runs a block order tile by tile, the loops
/// in front of the first private one around both products, and looks at what is loaded, and from when to when it is
/// there. Loops that are not in the order run once.
class Machine {
public:
  Machine(std::array<int, 4> size, std::array<int, 4> tile) : size(size), tile(tile) {}

  long moved = 0; // elements

  /// The most elements that are there at once.
  long run(const std::string &order) {
    together(order, std::min(order.find_first_of("kn"), order.size()), 0,
             {{'m', 0}, {'n', 0}, {'k', 0}, {'l', 0}});
    std::map<int, long> changes; // by step
    for (const Kept &one : kept) {
      changes[one.begin] += one.elements;
      changes[one.end + 1] -= one.elements;
    }
    long now = 0, most = 0;
    for (const auto &[step, change] : changes)
      most = std::max(most, now += change);
    return most;
  }

private:
  struct Kept {
    int begin, end;
    long elements;
    std::vector<int> tile; // which one of its tensor's
  };
  using Places = std::map<char, int>; // by loop: the tile that it is at

  static size_t number(char loop) { return std::string("mnkl").find(loop); }

  void together(const std::string &order, size_t shared, size_t next, Places at) {
    if (next < shared) {
      forTiles(order[next], at,
               [&](const Places &inner) { together(order, shared, next + 1, inner); });
      return;
    }
    product(order, next, 'n', at, [&](const Places &inner) {
      touch("mk", inner);
      touch("kl", inner);
      touchC(inner);
    });
    product(order, next, 'k', at, [&](const Places &inner) {
      touchC(inner);
      touch("ln", inner);
      touch("mn", inner);
    });
  }

  void product(const std::string &order, size_t next, char without, Places at,
               const std::function<void(const Places &)> &compute) {
    if (next == order.size()) {
      ++step;
      compute(at);
    } else if (order[next] == without) {
      product(order, next + 1, without, at, compute);
    } else {
      forTiles(order[next], at,
               [&](const Places &inner) { product(order, next + 1, without, inner, compute); });
    }
  }

  void forTiles(char loop, Places at, const std::function<void(const Places &)> &f) {
    for (int i = 0; i * tile[number(loop)] < size[number(loop)]; ++i) {
      at[loop] = i;
      f(at);
    }
  }

  std::vector<int> tileOf(const std::string &loops, const Places &at) const {
    std::vector<int> found;
    for (char loop : loops)
      found.push_back(at.at(loop));
    return found;
  }
  long room(const std::string &loops) const {
    long elements = 1;
    for (char loop : loops)
      elements *= tile[number(loop)];
    return elements;
  }

  /// A tensor of the memory outside: one tile is there, and goes when another one comes.
  void touch(const std::string &loops, const Places &at) {
    const std::vector<int> now = tileOf(loops, at);
    const auto known = last.find(loops);
    if (known != last.end() && kept[known->second].tile == now) {
      kept[known->second].end = step;
      return;
    }
    long elements = 1;
    for (char loop : loops)
      elements *=
          std::min(tile[number(loop)], size[number(loop)] - at.at(loop) * tile[number(loop)]);
    moved += elements;
    last[loops] = kept.size();
    kept.push_back({step, step, room(loops), now});
  }

  /// All tiles of C stay until they are no longer used.
  void touchC(const Places &at) {
    const auto [known, isNew] = ofC.try_emplace(tileOf("ml", at), kept.size());
    if (isNew)
      kept.push_back({step, step, room("ml"), {}});
    kept[known->second].end = step;
  }

  const std::array<int, 4> size, tile; // of m, n, k, l
  int step = 0;
  std::vector<Kept> kept;
  std::map<std::string, size_t> last; // by tensor
  std::map<std::vector<int>, size_t> ofC;
};

} // namespace

TEST_CASE(
    "A machine that runs every tile moves and keeps as much, whatever the order and the sizes") {
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) {
    std::array<int, 4> size, tile; // m, n, k, l
    for (int &one : size)
      one = 2 + static_cast<int>(random() % 4);
    const ChainSpace chain(chimeraChain(size[0], size[1], size[2], size[3]));
    const int capacity = 8 + static_cast<int>(random() % 30);
    auto number = [](char loop) { return std::string("mnkl").find(loop); };
    auto isOnce = [&](char loop) { return tile[number(loop)] == size[number(loop)]; };
    auto divides = [&](char loop) { return size[number(loop)] % tile[number(loop)] == 0; };
    double best = 1e300; // with tiles that divide
    std::string order = "klmn";
    do {
      for (tile[0] = 1; tile[0] <= size[0]; ++tile[0])
        for (tile[1] = 1; tile[1] <= size[1]; ++tile[1])
          for (tile[2] = 1; tile[2] <= size[2]; ++tile[2])
            for (tile[3] = 1; tile[3] <= size[3]; ++tile[3]) {
              std::string often = order; // a loop that runs once separates nothing
              std::erase_if(often, [&](char loop) { return isOnce(loop); });
              Machine machine(size, tile);
              const long used = machine.run(often);
              const BoundExpression tree{{}, blockOrder(chain.loops(often), chain.space)};
              const TileSizes sizes =
                  tileSizes(chain.extents(), chain.byLoop("mnkl", {tile.begin(), tile.end()}));
              const Volume v =
                  volumeOf(chain.operands, tree, place(chain.operands, tree, sizes.trips), sizes);
              if (v.moved != static_cast<double>(machine.moved) ||
                  v.used != static_cast<double>(used)) {
                CAPTURE(order, size, tile);
                CHECK(v.moved == static_cast<double>(machine.moved));
                CHECK(v.used == static_cast<double>(used));
              }
              if (used <= capacity && std::ranges::all_of(order, divides))
                best = std::min(best, static_cast<double>(machine.moved));
            }
    } while (std::ranges::next_permutation(order).found);

    // The search finds the optimum too.
    TileSearch search = searchOf(chain, 1, capacity);
    search.used = [](const Volume &v) { return v.used; };
    search.cost = [](const Volume &v) { return v.moved; };
    PruningReport report;
    const std::vector<TiledExpression> found = bestTiles(
        chain.operands, expressionsOf(chain.operands, kChimeraExpressions, report), search, report);
    REQUIRE(!found.empty());
    CHECK(report.isExhaustive);
    CHECK(found[0].cost == best);
  }
}

TEST_CASE("More points than are enumerated are searched from closed-form seeds, and the optimum is "
          "found") {
  const ChainSpace chain(chimeraChain(2048, 2048, 2048, 2048));
  TileSearch search = searchOf(chain, 16, 2 * 83968);
  PruningReport report;
  const std::vector<BoundExpression> expressions =
      expressionsOf(chain.operands, kChimeraExpressions, report);
  const std::vector<TiledExpression> best = bestTiles(chain.operands, expressions, search, report);
  CHECK(report.points == 18 * 4096);
  CHECK(!report.isExhaustive);
  CHECK(report.tried <= search.evaluations);
  REQUIRE(best.size() == search.keep);
  CHECK(best[0].volume.moved == 134217728);
  CHECK(best[0].cost == 2 * 134217728.0);
  CHECK(best[0].tiles == chain.byLoop("mnkl", {256, 16, 16, 256}));
  const std::string tree = print(best[0].expression, chain.space);
  CHECK((tree == "ml(k,n)" || tree == "lm(k,n)"));
  for (size_t i = 1; i < best.size(); ++i)
    CHECK(best[i - 1].cost <= best[i].cost);

  PruningReport again;
  const std::vector<TiledExpression> same = bestTiles(chain.operands, expressions, search, again);
  REQUIRE(same.size() == best.size());
  for (size_t i = 0; i < best.size(); ++i) {
    CHECK(same[i].expression == best[i].expression);
    CHECK(same[i].tiles == best[i].tiles);
  }

  PruningReport all;
  search.mostEnumerated = 1e6;
  CHECK(bestTiles(chain.operands, expressions, search, all)[0].cost == best[0].cost);
  CHECK(all.isExhaustive);
}

TEST_CASE("The whole space is never worse than one of the papers' spaces") {
  for (const auto &[m, n, k, h] :
       {std::array{512, 256, 64, 128}, {1024, 96, 64, 64}, {128, 1024, 512, 64}}) {
    const ChainSpace chain(mcfuserChain(m, n, k, h));
    TileSearch search = searchOf(chain, 16, 48 * 1024);
    search.mostEnumerated = 1e6;
    search.cost = [](const Volume &v) { return rooflineSeconds(v, {19.5e12, 1555e9, 108}); };
    auto best = [&](const ExpressionLimits &limits) {
      PruningReport report;
      const std::vector<TiledExpression> found =
          bestTiles(chain.operands, expressionsOf(chain.operands, limits, report), search, report);
      REQUIRE(!found.empty());
      return found[0].cost;
    };
    const double full = best({});
    CHECK(full <= best(kMcfuserExpressions));
    ExpressionLimits chimera = kChimeraExpressions;
    chimera.bindsBlocks = true; // the roofline counts blocks
    CHECK(full <= best(chimera));
  }
}

TEST_CASE("Tiles of symbolic extents fit at the greatest and are the best at the usual ones") {
  const ChainSpace chain(
      ProgramText("rows", "symbol rows = 1..4096 opt 256 divisor 1\n")
          .input("A", "64,64")
          .input("B", "64,rows")
          .input("D", "rows,32")
          .reduction("C", "m:64, n:rows; k:64", "sum", "mul(%A[m, k], %B[k, n])")
          .reduction("E", "m:64, h:32; n:rows", "sum", "mul(%C[m, n], %D[n, h])"));
  TileSearch search = searchOf(chain, 16, 32 * 1024);
  search.mostEnumerated = 1e6;
  PruningReport report;
  const std::vector<TiledExpression> best =
      bestTiles(chain.operands, expressionsOf(chain.operands, {}, report), search, report);
  REQUIRE(!best.empty());
  for (const TiledExpression &one : best) {
    const TileSizes sizes = tileSizes(search.extents.greatest, one.tiles);
    const Placement placement = place(chain.operands, one.expression, sizes.trips);
    CHECK(volumeOf(chain.operands, one.expression, placement, sizes).usedBytes <= search.capacity);
  }
  // A row of C would fit at 256 columns, not at 4096: n is walked once, for all of h.
  for (const TiledExpression &one : best)
    CHECK((print(one.expression, chain.space) != "m(nk,hn)" ||
           one.tiles[static_cast<size_t>(chain.loop("h"))] == 32));
}

TEST_CASE("Where loops run once, equal trees have the simplest one's name") {
  const ChainSpace chain(mcfuserChain(512, 256, 64, 64));
  PruningReport report;
  const std::vector<BoundExpression> expressions = expressionsOf(chain.operands, {}, report);
  const std::vector<TiledExpression> best =
      bestTiles(chain.operands, expressions, searchOf(chain, 16, 48 * 1024), report);
  REQUIRE(!best.empty());
  CHECK(best[0].tiles == chain.byLoop("mnkh", {128, 16, 64, 64})); // k and h run once
  CHECK(print(best[0].expression, chain.space) == "mh(n(k,.))");
}

TEST_CASE("Nothing that fits is no candidate") {
  const ChainSpace chain(mcfuserChain(64, 64, 64, 64));
  PruningReport report;
  CHECK(bestTiles(chain.operands, expressionsOf(chain.operands, {}, report),
                  searchOf(chain, 16, 100), report)
            .empty());
  CHECK(report.fitting == 0);
}

TEST_CASE("The slowest of several memories, as a machine with both counts it") {
  const ChainSpace chain(chimeraChain(64, 64, 64, 64));
  const BoundExpression tree{{}, *parseExpression("ml(k,n)", chain.space)};
  auto level = [&](double tile, double bytesPerSec, double capacity) {
    return LevelTiles{tree, std::vector<double>(4, tile), capacity, bytesPerSec};
  };
  // Outer tiles of 32: A, B, D and E move twice. In each of the 2*2*2 of either product, tiles of 8 move 4 times.
  const double outer = 4 * 2 * 64 * 64 * 2, inner = 8 * 4 * 4 * 32 * 32 * 2;
  const double room = 3 * 32 * 32 * 2;
  const std::array slowMemory = {level(32, 1, room), level(8, 100, room)};
  CHECK(slowestLevel(chain.operands, chain.extents(), slowMemory) == outer);
  const std::array slowCache = {level(32, 100, room), level(8, 1, room)};
  CHECK(slowestLevel(chain.operands, chain.extents(), slowCache) == inner);
  const std::array tooSmall = {level(32, 1, room - 1), level(8, 1, room)};
  CHECK(!slowestLevel(chain.operands, chain.extents(), tooSmall));
}

TEST_CASE("Chimera's CPU kernel: registers and intensity") {
  const OuterProduct paper{6, 4, 2};
  CHECK(paper.registers() == 30);
  CHECK(paper.intensity(1e12) == Catch::Approx(2.4));
  CHECK(paper.intensity(24) == Catch::Approx(24.0 * 24 / (24 * 10 + 48)));
  // The formula alone prefers another block; the paper's follows from 24 products in flight.
  const OuterProduct best = bestOuterProduct(32);
  CHECK(best.rows == 5);
  CHECK(best.vectors == 5);
  CHECK(best.registers() == 31);
  CHECK(best.intensity(1e12) == Catch::Approx(2.5));
  const OuterProduct deep = bestOuterProduct(32, 24);
  CHECK(deep.rows == 6);
  CHECK(deep.vectors == 4);
  CHECK(deep.intensity(1e12) == Catch::Approx(2.4));
}

// What trees move, hold and compute: the numbers of the MCFuser and Chimera papers, and a count of our own beside them.
#include "Chains.h"
#include "Tiling/counts/CompulsoryTraffic.h"
#include "Tiling/space/Lagrange.h"
#include "Tiling/space/Trees.h"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

constexpr DeviceRates kA100{312e12, 1555e9, 108}, kH200{989e12, 4800e9, 132},
    kRtx3080{59.5e12, 760e9, 68};
constexpr PlaceRules kAllLoops{.dropLoopsThatRunOnce = false};
constexpr VolumeRules kAsPrinted{.liveTiles = false};

std::optional<Volume> volumeAt(const ChainSpace &chain, const BoundExpression &tree,
                               const std::vector<double> &tiles, const PlaceRules &placing = {},
                               const VolumeRules &counting = {}) {
  const TileSizes sizes = tileSizes(chain.extents(), tiles);
  const Placement placement = place(chain.operands, tree, sizes.trips, placing);
  if (!placement.whyNot.empty())
    return std::nullopt;
  return volumeOf(chain.operands, tree, placement, sizes, counting);
}

BoundExpression parsed(const ChainSpace &chain, const std::string &text) {
  Result<Expression> expression = parseExpression(text, chain.space);
  REQUIRE(expression.ok());
  return {{}, *expression};
}
BoundExpression ordered(const ChainSpace &chain, const std::string &order) {
  return {{}, canonical(blockOrder(chain.loops(order), chain.space), chain.space)};
}

/// Calls f with the tiles of four loops, powers of two from 16 to 2048.
void forEachTile(const std::function<void(const std::vector<double> &)> &f) {
  std::vector<double> tiles(4);
  for (int code = 0; code < 4096; ++code) {
    for (int l = 0; l < 4; ++l)
      tiles[static_cast<size_t>(l)] = 16 << (code >> 3 * l & 7);
    f(tiles);
  }
}

/// By block order: the least that it moves with tiles that fit.
std::map<std::string, double> leastMoved(const ChainSpace &chain, double capacity,
                                         const PlaceRules &placing, const VolumeRules &counting) {
  std::map<std::string, double> found;
  const std::vector<double> extents = chain.extents();
  std::string order = "klmn";
  do {
    const BoundExpression tree = ordered(chain, order);
    std::map<std::vector<bool>, Placement> placements; // by the loops that run once
    forEachTile([&](const std::vector<double> &tiles) {
      const TileSizes sizes = tileSizes(extents, tiles);
      std::vector<bool> once;
      for (double trips : sizes.trips)
        once.push_back(trips == 1 && placing.dropLoopsThatRunOnce);
      auto known = placements.find(once);
      if (known == placements.end())
        known = placements.emplace(once, place(chain.operands, tree, sizes.trips, placing)).first;
      const Volume volume = volumeOf(chain.operands, tree, known->second, sizes, counting);
      if (volume.used > capacity)
        return;
      const auto [place, isNew] = found.emplace(order, volume.moved);
      place->second = std::min(place->second, volume.moved);
    });
  } while (std::ranges::next_permutation(order).found);
  return found;
}

std::set<std::string> ordersAt(const std::map<std::string, double> &least, double moved) {
  std::set<std::string> orders;
  for (const auto &[order, value] : least)
    if (value == moved)
      orders.insert(order);
  return orders;
}

double lowest(const std::map<std::string, double> &least, double above = 0) {
  double found = 1e300;
  for (const auto &[order, value] : least)
    if (value > above)
      found = std::min(found, value);
  return found;
}

} // namespace

TEST_CASE("Chimera's Table III: what is moved again, by tensor, in the order mlkn") {
  const ChainSpace chain(chimeraChain(2048, 2048, 2048, 2048));
  const BoundExpression tree = ordered(chain, "mlkn");
  const std::vector<double> trips(4, 2);
  const Placement placement = place(chain.operands, tree, trips);
  // A tensor is moved in full, once for each tile of these loops: MK ceil(L/TL), KL ceil(M/TM), NL ceil(M/TM), MN
  // ceil(L/TL); C is not moved.
  std::map<std::string, std::string> again;
  for (const PlacedStatement &statement : placement.statements)
    if (statement.operand >= 0) {
      std::string &loops =
          again[chain.program
                    .tensors[static_cast<size_t>(
                        chain.operands.operands[static_cast<size_t>(statement.operand)].tensor)]
                    .name];
      for (int loop : placement.repeats(statement, chain.operands))
        loops += chain.space.loops[static_cast<size_t>(loop)].name;
    }
  CHECK(again ==
        std::map<std::string, std::string>{{"A", "l"}, {"B", "m"}, {"D", "m"}, {"E", "l"}});
}

TEST_CASE("Chimera's Table III at random sizes, with tiles that do not divide them") {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    double size[4], tile[4]; // m, n, k, l
    for (int l = 0; l < 4; ++l) {
      size[l] = 2 + random() % 3000;
      tile[l] = 1 + random() % static_cast<int>(size[l] - 1); // no loop runs once
    }
    const auto [M, N, K, L] = std::tie(size[0], size[1], size[2], size[3]);
    const auto [TM, TN, TK, TL] = std::tie(tile[0], tile[1], tile[2], tile[3]);
    const ChainSpace chain(chimeraChain(int(M), int(N), int(K), int(L)));
    const Volume v =
        *volumeAt(chain, ordered(chain, "mlkn"), chain.byLoop("mnkl", {TM, TN, TK, TL}));
    auto moved = [&](const char *tensor) { return v.movedOf[chain.operand(tensor)]; };
    CHECK(moved("A") == M * K * std::ceil(L / TL));
    CHECK(moved("B") == K * L * std::ceil(M / TM));
    CHECK(moved("C") == 0);
    CHECK(moved("D") == N * L * std::ceil(M / TM));
    CHECK(moved("E") == M * N * std::ceil(L / TL));
    CHECK(v.used == std::max(TM * TK + TK * TL + TM * TL, TM * TL + TL * TN + TM * TN));
    CHECK(v.usedBytes == 2 * v.used);
    CHECK(v.moved == moved("A") + moved("B") + moved("D") + moved("E"));
  }
}

TEST_CASE("Chimera's observations about reuse") {
  const ChainSpace chain(chimeraChain(64, 64, 64, 64));
  const std::vector<double> tiles(4, 16); // each loop runs 4 times
  auto moved = [&](const char *order, const char *tensor) {
    return volumeAt(chain, ordered(chain, order), tiles)->movedOf[chain.operand(tensor)];
  };
  CHECK(moved("mknl", "A") == 64 * 64);     // 1: no loop inside moves along A
  CHECK(moved("mnlk", "A") == 64 * 64 * 4); // 2: l stands around k, which does
  for (const char *order : {"kmnl", "mknl", "mnkl", "mnlk"})
    CHECK(moved(order, "D") == 64 * 64 * 4); // 3: k is no loop of the second product
}

TEST_CASE("Chimera's optimum needs room for all tiles of C that are alive") {
  const ChainSpace chain(chimeraChain(2048, 2048, 2048, 2048));
  const double capacity = 164 * 1024 / 2; // elements of an A100's shared memory
  CHECK(capacity == 83968);
  const auto corrected = leastMoved(chain, capacity, kAllLoops, {});
  CHECK(lowest(corrected) == 134217728);
  CHECK(ordersAt(corrected, 134217728) == std::set<std::string>{"mlkn", "mlnk", "lmkn", "lmnk"});
  CHECK(lowest(corrected, 134217728) == 545259520);
  const Volume best =
      *volumeAt(chain, ordered(chain, "mlkn"), chain.byLoop("mnkl", {256, 16, 16, 256}));
  CHECK(best.moved == 134217728);
  CHECK(best.used <= capacity);

  const auto asPrinted = leastMoved(chain, capacity, kAllLoops, kAsPrinted);
  CHECK(asPrinted.size() == 24);
  CHECK(lowest(asPrinted) == 16777216);
  const std::set<std::string> trap = ordersAt(asPrinted, 16777216);
  CHECK(trap.size() == 12);
  CHECK(trap.contains("mnkl"));
  CHECK(trap.contains("knml"));
  CHECK(!trap.contains("mlkn"));

  // Statements that rise past loops that run once change none of that.
  CHECK(lowest(leastMoved(chain, capacity, {}, {})) == 134217728);
}

TEST_CASE("Lagrange's tiles are Chimera's closed form, and rounding costs what its bound allows") {
  const ChainSpace chain(chimeraChain(2048, 2048, 2048, 2048));
  const std::vector<double> extents = chain.extents(), least(4, 16);
  const RealVolume real = *realVolume(chain.operands, ordered(chain, "mlkn"), extents, {}, {});
  auto solved = [&](double elements) {
    return *lagrangeTiles(extents, least, 2 * elements, real.movedBytes, real.usedBytes);
  };
  const std::vector<double> tiles = solved(83968);
  const double longest = -16 + std::sqrt(16.0 * 16 + 83968);
  CHECK(tiles == chain.byLoop("mnkl", {tiles[0], 16, 16, tiles[0]}));
  CHECK(tiles[0] == Catch::Approx(longest).epsilon(1e-9));
  CHECK(tiles[0] == Catch::Approx(274.2137).margin(5e-5));
  const double fewest = real.movedBytes(tiles) / 2;
  CHECK(std::round(fewest) == 125302771);
  CHECK(fewest == Catch::Approx(2.0 * 2048 * 2048 * 4096 / longest));

  std::vector<double> rounded = tiles;
  for (double &tile : rounded)
    tile = std::floor(tile);
  const Volume v = *volumeAt(chain, ordered(chain, "mlkn"), rounded);
  CHECK(rounded[0] == 274);
  CHECK(v.moved == 134217728);
  CHECK(v.used <= 83968);
  const double bound = 1 + longest / 2048 + 1 / rounded[0];
  CHECK(v.moved / fewest == Catch::Approx(1.0711).margin(5e-5));
  CHECK(bound == Catch::Approx(1.1375).margin(5e-5));
  CHECK(v.moved / fewest <= bound);

  const std::vector<double> hopper = solved(227 * 1024 / 2);
  CHECK(hopper[0] == Catch::Approx(325.29).margin(5e-3));
  CHECK(std::round(real.movedBytes(hopper) / 2) == 105627479);
}

TEST_CASE("Lagrange's tiles move no more than any others that fit, when sizes differ") {
  const ChainSpace chain(chimeraChain(3000, 700, 90, 5000));
  const std::vector<double> extents = chain.extents(), least(4, 8);
  const RealVolume real = *realVolume(chain.operands, ordered(chain, "mlkn"), extents, {}, {});
  const double capacity = 60000;
  const std::vector<double> tiles =
      *lagrangeTiles(extents, least, capacity, real.movedBytes, real.usedBytes);
  CHECK(real.usedBytes(tiles) <= capacity);
  double best = 1e300;
  for (double m = 8; m <= 3000; m *= 1.02)
    for (double l = 8; l <= 5000; l *= 1.02)
      if (const std::vector<double> one = chain.byLoop("mnkl", {m, 8, 8, l});
          real.usedBytes(one) <= capacity)
        best = std::min(best, real.movedBytes(one));
  CHECK(real.movedBytes(tiles) <= best * 1.0001);
}

TEST_CASE("Hoisting a load past a loop that runs once moves A h*n times less often") {
  const ChainSpace chain(mcfuserChain(1024, 512, 256, 128));
  const BoundExpression tree = parsed(chain, "mhnk");
  auto moved = [&](double k, const PlaceRules &placing = {}) {
    return volumeAt(chain, tree, chain.byLoop("mnkh", {64, 32, k, 16}), placing)
        ->movedOf[chain.operand("A")];
  };
  const double h = 128 / 16, n = 512 / 32;
  CHECK(moved(32) == 1024 * 256 * h * n);
  CHECK(moved(256) == 1024 * 256);
  CHECK(moved(256, kAllLoops) == 1024 * 256 * h * n);
}

TEST_CASE("MCFuser's intensity of a tile of products") {
  auto intensity = [](int k, double storeWeight) { // flop an element
    const ChainSpace chain(ProgramText("product", "", "f16")
                               .input("A", "256," + std::to_string(k))
                               .input("B", std::to_string(k) + ",256")
                               .reduction("C", "m:256, n:256; k:" + std::to_string(k), "sum",
                                          "mul(%A[m, k], %B[k, n])"));
    const Volume v = *volumeAt(chain, parsed(chain, k == 1 ? "mn" : "mnk"),
                               chain.byLoop("mn", {256, 256}), {}, {.storeWeight = storeWeight});
    CHECK(v.intensity() == Catch::Approx(v.flops / v.moved / 2)); // flop a byte of f16
    return v.flops / v.moved;
  };
  // The paper's formula has two accesses to C, its text one.
  CHECK(intensity(1024, 2) == Catch::Approx(204.8));
  CHECK(intensity(1, 2) == Catch::Approx(0.996).margin(5e-4));
  CHECK(intensity(1024, 1) == Catch::Approx(227.6).margin(0.05));
  CHECK(intensity(1, 1) == Catch::Approx(1.98).margin(5e-3));
}

TEST_CASE("MCFuser's estimate: equations (2) to (5)") {
  const ChainSpace chain(mcfuserChain(512, 256, 64, 128));
  const BoundExpression tree = bindBlocks(parsed(chain, "mhnk").inner, chain.space);
  const Volume v = *volumeAt(chain, tree, chain.byLoop("mnkh", {64, 32, 16, 64}));
  // Trips: m 8, n 8, k 4, h 2.
  const double elements = 8 * 2 * (8 * (4 * (64 * 16 + 16 * 32) + 32 * 64) + 64 * 64);
  const double flops = 8 * 2 * 8 * (4 * 2.0 * 64 * 32 * 16 + 2.0 * 64 * 32 * 64);
  CHECK(v.moved == elements);
  CHECK(v.flops == flops);
  CHECK(v.blocks == 16);
  CHECK(v.tiles == 64 * 16 + 16 * 32 + 64 * 32 + 32 * 64 + 64 * 64); // equation (1)
  CHECK(v.tileBytes == 2 * v.tiles);
  const double slowdown = (16.0 + 108) / 16;
  CHECK(mcfuserSeconds(v, kA100, ElementsCount::AsPrinted) ==
        Catch::Approx((elements / 1555e9 + flops / 312e12) * slowdown));
  CHECK(mcfuserSeconds(v, kA100) ==
        Catch::Approx((2 * elements / 1555e9 + flops / 312e12) * slowdown));
  CHECK(rooflineSeconds(v, kA100) == Catch::Approx(2 * elements / 1555e9 * (108.0 / 16)));
}

namespace {

struct Row {
  const char *name;
  int batch, m, n, k, h; // MCFuser's names: Chimera's l is n, its n is h
  double saved;          // percent
};
constexpr Row kMcfuserRows[] = {
    {"G1", 1, 512, 256, 64, 64, 72.7},      {"G2", 1, 512, 256, 64, 128, 64.0},
    {"G3", 1, 512, 256, 64, 256, 51.6},     {"G4", 1, 512, 256, 256, 256, 40.0},
    {"G5", 1, 512, 512, 256, 256, 50.0},    {"G6", 1, 512, 1024, 256, 256, 57.1},
    {"G7", 1, 512, 512, 128, 128, 66.7},    {"G8", 1, 1024, 512, 128, 128, 72.7},
    {"G9", 1, 2048, 512, 128, 128, 76.2},   {"G10", 1, 1024, 1024, 128, 128, 80.0},
    {"G11", 4, 1024, 1024, 128, 128, 80.0}, {"G12", 8, 1024, 1024, 128, 128, 80.0}};
constexpr Row kChimeraRows[] = {
    {"G1", 8, 512, 512, 64, 64, 80.0},  {"G2", 12, 512, 512, 64, 64, 80.0},
    {"G3", 16, 512, 512, 64, 64, 80.0}, {"G4", 12, 256, 256, 64, 64, 66.7},
    {"G5", 16, 256, 256, 64, 64, 66.7}, {"G6", 16, 256, 256, 80, 80, 61.5},
    {"G7", 12, 208, 208, 64, 64, 61.9}, {"G8", 16, 208, 208, 64, 64, 61.9},
    {"G9", 16, 208, 208, 80, 80, 56.5}, {"G10", 1, 512, 256, 64, 64, 72.7},
    {"G11", 1, 768, 384, 64, 64, 80.0}, {"G12", 1, 1024, 512, 64, 64, 84.2}};

std::string batched(const Row &row) {
  auto s = [](int size) { return std::to_string(size); };
  const std::string b = s(row.batch), m = s(row.m), n = s(row.n), k = s(row.k), h = s(row.h);
  return ProgramText("batched", "", "f16")
      .input("A", b + "," + m + "," + k)
      .input("B", b + "," + k + "," + n)
      .input("D", b + "," + n + "," + h)
      .reduction("C", "b:" + b + ", m:" + m + ", n:" + n + "; k:" + k, "sum",
                 "mul(%A[b, m, k], %B[b, k, n])")
      .reduction("E", "b:" + b + ", m:" + m + ", h:" + h + "; n:" + n, "sum",
                 "mul(%C[b, m, n], %D[b, n, h])");
}

} // namespace

TEST_CASE("Compulsory bytes of the papers' chains, fused and apart, and what is bound by memory") {
  std::map<std::string, CompulsoryVolume> found;
  auto check = [&](const std::string &paper, const Row &row) {
    const ChainSpace chain(batched(row));
    const CompulsoryVolume v = compulsoryVolume(chain.operands, chain.extents());
    CAPTURE(paper, row.name, v.fusedBytes, v.apartBytes);
    CHECK(std::round(1000 * (1 - v.fusedBytes / v.apartBytes)) == std::round(10 * row.saved));
    const Traffic traffic = compulsoryTraffic(chain.program); // another count of the same
    CHECK(v.fusedBytes == traffic.readBytes + traffic.writtenBytes);
    const double apart = v.flops / v.apartBytes;
    CHECK(std::round(apart) >= 40);
    CHECK(std::round(apart) <= 146);
    CHECK(kA100.isMemoryBound(apart));
    CHECK(kH200.isMemoryBound(apart));
    if (paper == "mcfuser") // accumulating in f32, an RTX 3080 has arithmetic for G1 and G2 alone
      CHECK(kRtx3080.isMemoryBound(apart) ==
            (row.name == std::string("G1") || row.name == std::string("G2")));
    found[paper + row.name] = v;
  };
  for (const Row &row : kMcfuserRows)
    check("mcfuser", row);
  for (const Row &row : kChimeraRows)
    check("chimera", row);
  CHECK(found["chimeraG2"].fusedBytes == 3145728);
  CHECK(found["chimeraG2"].apartBytes == 15728640);
  CHECK(found["mcfuserG12"].fusedBytes == 8388608);
  CHECK(found["mcfuserG12"].apartBytes == 41943040);
  CHECK(std::round(found["mcfuserG1"].flops / found["mcfuserG1"].apartBytes) == 47);
  CHECK(std::round(found["mcfuserG2"].flops / found["mcfuserG2"].apartBytes) == 61);
}

TEST_CASE("Flop a byte at which devices are in balance") {
  auto balance = [](double flops, double bytes) { return std::round(10 * flops / bytes) / 10; };
  CHECK(balance(kA100.flopsPerSec, kA100.bytesPerSec) == 200.6);
  CHECK(balance(12e12, 131e9) == 91.6);
  CHECK(balance(320e12, 1200e9) == 266.7);
  CHECK(std::round(kRtx3080.flopsPerSec / kRtx3080.bytesPerSec) == 78);
}

TEST_CASE("Volumes at the least, usual and greatest values of a symbol") {
  const ChainSpace chain(
      ProgramText("rows", "symbol rows = 1..512 opt 64 divisor 1\n")
          .input("A", "rows,64")
          .input("B", "64,128")
          .input("D", "128,32")
          .reduction("C", "m:rows, n:128; k:64", "sum", "mul(%A[m, k], %B[k, n])")
          .reduction("E", "m:rows, h:32; n:128", "sum", "mul(%C[m, n], %D[n, h])"));
  const SpaceExtents extents = spaceExtents(chain.space, chain.program.symbols);
  const BoundExpression tree = ordered(chain, "mnkh");
  auto volume = [&](const std::vector<double> &at) {
    const TileSizes sizes = tileSizes(at, chain.byLoop("mnkh", {16, 32, 16, 16}));
    return volumeOf(chain.operands, tree, place(chain.operands, tree, sizes.trips), sizes);
  };
  const size_t a = chain.operand("A"), b = chain.operand("B");
  CHECK(extents.least[0] == 1);
  CHECK(volume(extents.least).movedOf[b] == 64 * 128); // m runs once: nothing is moved again
  CHECK(volume(extents.least).movedOf[a] == 64 * 4);   // for each tile of n
  CHECK(volume(extents.usual).movedOf[b] == 64 * 128 * 4);
  CHECK(volume(extents.greatest).movedOf[b] == 64 * 128 * 32);
  CHECK(volume(extents.usual).used == volume(extents.greatest).used);
}

TEST_CASE("What is alive together: values until their last reader, maps in place, held results") {
  const ChainSpace chain(ProgramText("alive")
                             .input("A", "64,64")
                             .input("B", "64,64")
                             .input("D", "64,64")
                             .reduction("C", "m:64, n:64; k:64", "sum", "mul(%A[m, k], %B[k, n])")
                             .map("R", "m:64, n:64", "max(%C[m, n], 0.0)")
                             .reduction("E", "m:64, h:64; n:64", "sum", "mul(%R[m, n], %D[n, h])"));
  const std::vector<double> tiles = chain.byLoop("mnkh", {16, 16, 8, 8});
  // m(n(k,.,h)): C's tile, and R in its place.
  CHECK(volumeAt(chain, parsed(chain, "m(n(k,h))"), tiles)->used == 16 * 16 + 2 * 16 * 8);
  // All of C's row, with E's tile as it grows.
  CHECK(volumeAt(chain, parsed(chain, "m(nk,hn)"), tiles)->used == 64 * 16 + 2 * 16 * 8);
  // E is held for all of h while n runs.
  CHECK(volumeAt(chain, parsed(chain, "m(n(k,h))"), tiles, {.holdSums = true})->used ==
        16 * 16 + 16 * 64 + 2 * 16 * 8);
}

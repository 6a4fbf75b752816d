// MCFuser's equation (1) beside the shared memory of schedules with the same trees and tiles: the paper's figure 10 for
// its chains of two products on an A100, and where each estimate differs from what the allocator gives.
#include "Candidates.h"
#include "Chains.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/space/Tiles.h"
#include "Tiling/space/TreeBuilder.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;
using namespace fusec::tiling;

namespace {

constexpr double kTolerance = 1.2; // of rule 4: an estimate may be that many times the limit
constexpr double kElementBytes = 2;

/// A chain of the paper's table II, or several that differ in batches alone: those have more of the same blocks.
struct ChainSizes {
  const char *name;
  int m, n, k, h;
  int times = 1;
};
constexpr ChainSizes kChains[] = {
    {"G1", 512, 256, 64, 64},    {"G2", 512, 256, 64, 128},
    {"G3", 512, 256, 64, 256},   {"G4", 512, 256, 256, 256},
    {"G5", 512, 512, 256, 256},  {"G6", 512, 1024, 256, 256},
    {"G7", 512, 512, 128, 128},  {"G8", 1024, 512, 128, 128},
    {"G9", 2048, 512, 128, 128}, {"G10-12", 1024, 1024, 128, 128, 3},
};

struct Candidate {
  const ChainSizes *chain = nullptr;
  double m = 0, n = 0, k = 0, h = 0; // tiles
  Volume volume;                     // tileBytes: equation (1)
  double estimated = 0;              // bytes, by storageOf
  double allocated = 0;              // bytes, by the allocator of Gir

  double bytesOf(double rows, double columns) const { return kElementBytes * rows * columns; }
  /// Tiles that are copied have a column more, against bank conflicts.
  double bytesOfFirst() const { return bytesOf(k, m + 1) + bytesOf(k, n + 1); }
  double bytesOfSecond() const { return bytesOf(m, n) + bytesOf(n, h + 1); }
};

/// Schedules of a chain's trees.
class ChainSchedules {
public:
  ChainSchedules(int m, int n, int k, int h)
      : pattern(patternFrom(mcfuserChain(m, n, k, h))), program(pattern), tree(program, true) {}
  ChainSchedules(const ChainSchedules &) = delete;

  /// Fills in the bytes; false where no kernel has such tiles, because its threads lack registers for the sums.
  bool measure(Candidate &one, const std::set<size_t> &streamed) const {
    const TreeShape shape{.rows = int64_t(one.m),
                          .tile = {.rows = int64_t(one.m) / target.unitsOf(TreeBuilder::kThreads),
                                   .vectors = int64_t(one.n) / target.lanes},
                          .depth = int64_t(one.k),
                          .streamed = streamed};
    const std::optional<Schedule> schedule = TreeBuilder(tree, target, shape).build();
    if (!schedule || !verify(*schedule, pattern).ok())
      return false;
    one.estimated = storageOf({*schedule, program}).sharedBytes;
    GirKernel kernel = valueOf(lowerSchedule(pattern, *schedule, pattern.symbols)).kernel;
    simplify(kernel);
    insertSyncs(kernel);
    allocate(kernel);
    one.allocated = double(kernel.sharedBytes);
    return true;
  }

  const Target target = targetNamed("sm_80");

private:
  const ExprProgram pattern;
  const ScheduledProgram program;
  const TreeSpace tree;
};

/// A chain's space, with a tree and the sizes of tiles that rule 3 leaves.
struct ChainTree {
  ChainTree(const ChainSizes &c, const std::string &text)
      : chain(mcfuserChain(c.m, c.n, c.k, c.h)),
        tree(bindBlocks(valueOf(parseExpression(text, chain.space)), chain.space)) {
    // Multiples of 16; along n and h, which the lanes of a warp walk, of 32.
    PruningReport report;
    sizes = sizesOf(chain.extents(), chain.byLoop("mnkh", {16, 32, 16, 32}), report);
  }
  const std::vector<double> &of(const char *name) const {
    return sizes[static_cast<size_t>(chain.loop(name))];
  }
  Volume volumeAt(const Candidate &c) const {
    const TileSizes tiles = tileSizes(chain.extents(), chain.byLoop("mnkh", {c.m, c.n, c.k, c.h}));
    const Placement placement = place(chain.operands, tree, tiles.trips);
    REQUIRE(placement.whyNot.empty());
    return volumeOf(chain.operands, tree, placement, tiles);
  }

  const ChainSpace chain;
  const BoundExpression tree;
  std::vector<std::vector<double>> sizes;
};

/// All of MCFuser's mh(n(k,.)). What a block of it runs is a chain with as many columns as its tile of h.
std::vector<Candidate> measuredNests() {
  std::vector<Candidate> all;
  for (const ChainSizes &sizes : kChains) {
    const ChainTree tree(sizes, "mhnk");
    REQUIRE(print(tree.tree, tree.chain.space) == "mh(n(k,.))");
    for (double h : tree.of("h")) {
      const ChainSchedules schedules(sizes.m, sizes.n, sizes.k, static_cast<int>(h));
      for (double m : tree.of("m"))
        for (double n : tree.of("n"))
          for (double k : tree.of("k"))
            if (Candidate one{&sizes, m, n, k, h, {}, 0, 0}; schedules.measure(one, {1})) {
              one.volume = tree.volumeAt(one);
              all.push_back(std::move(one));
            }
    }
  }
  return all;
}
const std::vector<Candidate> &nestsOfChains() {
  static const std::vector<Candidate> all = measuredNests();
  return all;
}

/// How often an estimate and the bytes in use say the same of what fits.
struct Agreement {
  int bothFit = 0;     // quadrant III of the paper's figure
  int bothTooMuch = 0; // I
  int kept = 0;        // II: too much, and the estimate does not say so
  int dropped = 0;     // IV: it fits, and the estimate says that it does not

  void add(bool isKept, bool fits, int times) {
    (fits ? isKept ? bothFit : dropped : isKept ? kept : bothTooMuch) += times;
  }
  int all() const { return bothFit + bothTooMuch + kept + dropped; }
  int right() const { return bothFit + bothTooMuch; }
  std::string text() const {
    return std::to_string(bothFit) + " fit, " + std::to_string(bothTooMuch) + " do not, " +
           std::to_string(kept) + " are kept and do not, " + std::to_string(dropped) +
           " are dropped and do";
  }
};

/// Rule 4 with an estimate, at what a block of an A100 may have.
Agreement agreementOf(const std::vector<Candidate> &candidates, double Volume::*estimate,
                      double Candidate::*bytes, std::string_view chain = {}) {
  const double limit = double(targetNamed("sm_80").mostSharedBytes());
  Agreement out;
  for (const Candidate &one : candidates)
    if (chain.empty() || chain == one.chain->name)
      out.add(one.volume.*estimate <= kTolerance * limit, one.*bytes <= limit,
              chain.empty() ? one.chain->times : 1);
  return out;
}

std::string textOf(const std::vector<Candidate> &candidates, double Candidate::*bytes) {
  std::string out;
  for (const ChainSizes &c : kChains)
    out += std::string(c.name) + ": " +
           agreementOf(candidates, &Volume::tileBytes, bytes, c.name).text() + "\n";
  return out + "all: " + agreementOf(candidates, &Volume::tileBytes, bytes).text();
}

bool isNear(double estimate, double bytes) { return std::abs(estimate - bytes) <= 0.2 * bytes; }

} // namespace

TEST_CASE("Equation (1) and the allocator agree on what fits for 9 of 10 candidates") {
  CHECK(targetNamed("sm_80").mostSharedBytes() == 163 << 10);
  const std::vector<Candidate> &all = nestsOfChains();
  INFO(textOf(all, &Candidate::allocated));
  const Agreement found = agreementOf(all, &Volume::tileBytes, &Candidate::allocated);
  CHECK(found.all() >= 3000);
  CHECK(found.right() >= 0.9 * found.all());
  CHECK(found.bothFit >= 0.5 * found.all());
  CHECK(found.bothTooMuch >= 0.05 * found.all());
  // The paper's are 8.2 % and 1.2 %, here it is the other way round, 0 and 9.8 %: a block has less than the estimate,
  // which adds what is there at different times and the sums, which are in registers. What padding and alignment add is
  // less than rule 4's tolerance.
  CHECK(found.kept == 0);
  CHECK(found.dropped <= 0.1 * found.all());
}

TEST_CASE("The search knows a chain's bytes as the allocator gives them") {
  for (const Candidate &c : nestsOfChains())
    if (c.estimated != c.allocated) {
      CAPTURE(c.chain->name, c.m, c.n, c.k, c.h);
      CHECK(c.estimated == c.allocated);
    }
}

// Equation (1) is not within a fifth of the allocator's bytes where both products have tiles of their own. Why, is said
// exactly: with what it leaves out or adds put right, it is.
TEST_CASE("Equation (1) differs from the allocator by sums, padding, and what lies where something "
          "else lay") {
  const std::vector<Candidate> &all = nestsOfChains();
  int near = 0;
  for (const Candidate &c : all) {
    const double sums = c.bytesOf(c.m, c.h), padding = c.bytesOf(1, 2 * c.k + c.n);
    const double together = std::max(c.bytesOfFirst(), c.bytesOfSecond());
    const double tiles = c.volume.tileBytes, first = c.bytesOf(c.k, c.m + c.n),
                 second = c.bytesOf(c.n, c.m + c.h);
    const bool holds =
        // The allocator: of a product the tiles that it reads, and of the second one C, which the first one sums in
        // registers; then the tiles of the first one are not needed.
        c.allocated >= together && c.allocated <= together + kSharedAlignment &&
        isNear(std::max(first, second), c.allocated) &&
        // All tiles but the sums, with their padding, would be at most twice as much.
        c.allocated <= tiles - sums + padding && tiles - sums + padding <= 2 * c.allocated;
    near += isNear(tiles, c.allocated);
    if (!holds) {
      CAPTURE(c.chain->name, c.m, c.n, c.k, c.h, tiles, c.allocated);
      CHECK(holds);
    }
  }
  CHECK(near <= 0.05 * double(all.size())); // 4 %
}

TEST_CASE("Where C's rows stay, equation (1) misses tiles, and those that are alive are what the "
          "allocator gives") {
  std::vector<Candidate> all;
  for (const ChainSizes &sizes : kChains) {
    const ChainTree tree(sizes, "m(nk,hn)");
    const ChainSchedules schedules(sizes.m, sizes.n, sizes.k, sizes.h);
    for (double m : tree.of("m"))
      for (double n : tree.of("n"))
        // The builder has one width for both products, and one depth: square tiles. Where k or h ran once, the tree
        // would be another one.
        if (Candidate one{&sizes, m, n, n, n, {}, 0, 0};
            n < sizes.k && n < sizes.h && schedules.measure(one, {})) {
          one.volume = tree.volumeAt(one);
          all.push_back(std::move(one));
        }
  }
  const Agreement live = agreementOf(all, &Volume::usedBytes, &Candidate::allocated),
                  printed = agreementOf(all, &Volume::tileBytes, &Candidate::allocated);
  INFO("alive: " << live.text() << "\nequation (1): " << printed.text());
  CHECK(live.all() >= 100);
  CHECK(live.right() >= 0.95 * live.all());
  CHECK(printed.kept >= 0.2 * printed.all());
  for (const Candidate &c : all) {
    CAPTURE(c.chain->name, c.m, c.n, c.volume.usedBytes, c.allocated);
    CHECK(std::abs(c.volume.usedBytes - c.allocated) <= 0.05 * c.allocated);
  }
}

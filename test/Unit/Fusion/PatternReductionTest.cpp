// PatternReduction by itself: how many patterns it looks at, and which of them it keeps.
#include "Fusion/PatternReduction.h"
#include "Fusion/SearchGraph.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <numeric>

using namespace fusec;

namespace {

/// Combines offers of a vertex 0; a pattern gains the sum of its vertices.
struct Combined {
  explicit Combined(const std::vector<Offers> &consumers, const FusionLimits &limits = {}) {
    PatternReduction reduction(
        limits,
        [this](const std::vector<int> &) {
          ++looked;
          return true;
        },
        [](const std::vector<int> &all) {
          return double(std::accumulate(all.begin(), all.end(), 0));
        });
    reduction.note = [this](const std::vector<Candidate> &kept) {
      temporaries.push_back(static_cast<int>(kept.size()));
    };
    best = reduction.combine({0}, consumers);
    temporaries.pop_back(); // the whole
  }
  int looked = 0;
  std::vector<int> temporaries; // kept of each group
  std::vector<Candidate> best;
};

/// Three offers that share nothing with another consumer's.
Offers threeOf(int consumer) {
  const int first = 10 * consumer;
  return {{first, first + 1, first + 2}, {first, first + 1}, {first}};
}

VertexSets verticesOf(const std::vector<Candidate> &candidates) {
  VertexSets out;
  for (const Candidate &c : candidates)
    out.push_back(c.vertices);
  return out;
}

} // namespace

TEST_CASE("reduction: two consumers with three candidates have fifteen combinations, three stay") {
  const FusionLimits papers;
  CHECK(papers.topPatterns == 3);
  CHECK(papers.consumersTogether == 2);
  CHECK(papers.beamWidth == 3);
  const Combined group({threeOf(5), threeOf(6)});
  CHECK(group.looked == 15);
  CHECK(verticesOf(group.best) ==
        VertexSets{{0, 50, 51, 52, 60, 61, 62}, {0, 50, 51, 60, 61, 62}, {0, 50, 51, 52, 60, 61}});
  FusionLimits two;
  two.topPatterns = 2;
  CHECK(Combined({{{50, 51}, {50}}, {{60, 61}, {60}}}, two).looked == 8);
}

TEST_CASE("reduction: three consumers have six temporary candidates, of which three stay") {
  // FusionStitching, Fig. 4: V8 with the groups {V5, V6} and {V7}.
  const Combined whole({threeOf(5), threeOf(6), threeOf(7)});
  CHECK(whole.temporaries == std::vector<int>{3, 3});
  CHECK(whole.looked == 15 + 3 + 3 * 3); // unions of both groups' too
  REQUIRE(whole.best.size() == 3);
  CHECK(whole.best[0].vertices == std::vector<int>{0, 50, 51, 52, 60, 61, 62, 70, 71, 72});
}

TEST_CASE("reduction: a pattern that two groups find is one of those that stay") {
  // All consumers lead to the same vertices.
  const Offers same = {{1, 2, 3}, {2, 3}, {3}};
  const Combined whole({same, same, same});
  CHECK(verticesOf(whole.best) == VertexSets{{0, 1, 2, 3}, {0, 2, 3}, {0, 3}});
}

TEST_CASE("reduction: work grows with the consumers") {
  auto looked = [](int consumers) {
    std::vector<Offers> offers;
    for (int c = 1; c <= consumers; ++c)
      offers.push_back(threeOf(c));
    return Combined(offers).looked;
  };
  CHECK(looked(64) == 32 * 15 + 31 * 9);
  CHECK(looked(640) < 11 * looked(64));
}

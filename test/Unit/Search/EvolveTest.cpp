// The evolutionary search finds what enumeration finds, stays in its budget, and repeats.
#include "Search/Evolve.h"

#include <catch2/catch_all.hpp>

#include <cmath>
#include <set>

using namespace fusec::search;

namespace {

/// Four decisions of 40 options each and one of five kinds: 12.8 million candidates, some of which are not allowed.
const std::vector<Choice> kChoices = {{5, false}, {40}, {40}, {40}, {40}};

std::optional<double> bowl(const Genome &genome) {
  if (genome[1] + genome[2] > 60)
    return std::nullopt;
  double score = 1 + 30 * std::abs(genome[0] - 3);
  for (size_t i = 1; i < genome.size(); ++i)
    score += std::pow(genome[i] - 7.0 * static_cast<double>(i), 2);
  return score;
}

} // namespace

TEST_CASE("The best of 12.8 million candidates is found in 20,000 evaluations") {
  Budget budget(20000);
  std::set<Genome> asked;
  const std::vector<Scored> best = evolve(
      kChoices, {},
      [&](const Genome &genome) {
        CHECK(asked.insert(genome).second); // once each
        return bowl(genome);
      },
      {.gain = 0.0001, .patience = 8}, budget);
  REQUIRE(best.size() == 8);
  CHECK(best[0].genome == Genome{3, 7, 14, 21, 28});
  CHECK(best[0].score == 1);
  for (size_t i = 1; i < best.size(); ++i)
    CHECK(best[i - 1].score <= best[i].score);
  CHECK(budget.spent() == static_cast<int64_t>(asked.size()));
}

TEST_CASE("A search takes no more than its budget, and a seed counts") {
  Budget budget(10);
  int calls = 0;
  const std::vector<Genome> seeds = {{3, 7, 14, 21, 28}};
  const std::vector<Scored> best = evolve(
      kChoices, seeds,
      [&](const Genome &genome) {
        ++calls;
        return bowl(genome);
      },
      {.keep = 1}, budget);
  CHECK(calls == 10);
  REQUIRE(best.size() == 1);
  CHECK(best[0].genome == seeds[0]);
}

TEST_CASE("The same seed gives the same candidates, another one others") {
  auto found = [](uint64_t seed) {
    Budget budget(300);
    std::vector<Genome> order;
    evolve(
        kChoices, {}, [&](const Genome &genome) { return order.push_back(genome), bowl(genome); },
        {.population = 32, .seed = seed}, budget);
    return order;
  };
  CHECK(found(1) == found(1));
  CHECK(found(1) != found(2));
}

TEST_CASE("A space smaller than the budget ends the search, also where nothing is allowed") {
  Budget budget(1000);
  const std::vector<Choice> small = {{2}, {3, false}};
  CHECK(
      evolve(small, {}, [](const Genome &g) { return 1.0 + g[0] + g[1]; }, {}, budget).size() == 6);
  CHECK(budget.spent() == 6);
  CHECK(evolve(
            small, {}, [](const Genome &) { return std::optional<double>(); }, {}, budget)
            .empty());
}

#include "Search/Choose.h"

#include <catch2/catch_all.hpp>

using namespace fusec::search;

TEST_CASE("The lowest score wins, the first one on a tie, and the log tells all") {
  const std::vector<double> scores = {3, 1, 2, 1, 5};
  std::vector<size_t> asked;
  Log log = {{"earlier", 0, true}};
  size_t best = chooseLowest(
      scores.size(),
      [&](size_t i) {
        asked.push_back(i);
        return scores[i];
      },
      [](size_t i) { return "c" + std::to_string(i); }, log);
  CHECK(best == 1);
  CHECK(asked == std::vector<size_t>{0, 1, 2, 3, 4}); // once each, in order
  REQUIRE(log.size() == 6);
  CHECK(log[0].name == "earlier");
  for (size_t i = 0; i < scores.size(); ++i) {
    CHECK(log[i + 1].name == "c" + std::to_string(i));
    CHECK(log[i + 1].score == scores[i]);
    CHECK(log[i + 1].chosen == (i == 1));
  }
}

TEST_CASE("A choice of one is that one, also when it is worse than what was logged before") {
  Log log = {{"better", 1, false}};
  CHECK(chooseLowest(1, [](size_t) { return 9.0; }, [](size_t) { return "only"; }, log) == 0);
  CHECK(log[1].chosen);
  CHECK_FALSE(log[0].chosen);
}

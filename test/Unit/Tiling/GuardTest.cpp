// Guards of a schedule's variants: what is known of the sizes behind them.
#include "Tiling/search/BestSchedules.h"

#include <catch2/catch_all.hpp>

using namespace fusec;

TEST_CASE("the sizes that a guard lets through") {
  const auto guarded = [](Symbol s, int64_t divisor) {
    const std::optional<Symbol> found = multiplesOf(std::move(s), divisor);
    return found ? std::pair(found->opt, found->divisor) : std::pair<int64_t, int64_t>(0, 0);
  };
  using Sizes = std::pair<int64_t, int64_t>;
  CHECK(guarded({"n", 1, 1, 64, 1}, 16) == Sizes{16, 16});
  CHECK(guarded({"n", 1, 60, 70, 1}, 16) == Sizes{64, 16});
  CHECK(guarded({"n", 1, 70, 70, 1}, 16) == Sizes{64, 16}); // none above it
  CHECK(guarded({"n", 6, 6, 600, 6}, 16) == Sizes{48, 48});
  CHECK(guarded({"n", 1, INT64_MAX, INT64_MAX, 1}, 16) == Sizes{INT64_MAX / 16 * 16, 16});
  for (const Symbol &none : {Symbol{"n", 17, 17, 31, 1}, Symbol{"n", 1, 1, 15, 1}})
    CHECK(guarded(none, 16) == Sizes{0, 0});
  CHECK(guarded({"n", 1, 1, INT64_MAX, INT64_MAX - 1}, INT64_MAX) == Sizes{0, 0});
}

// Which schedules for which sizes (search/SizeChoice.h).
#include "Tiling/search/SizeChoice.h"

#include <catch2/catch_all.hpp>

using namespace fusec::tiling;

namespace {

/// How much slower than with the fastest schedules the worst size of the table is by the tree.
double worst(const SizeTable &table, const SizeTree &tree) {
  double most = 1;
  for (size_t at = 0; at < table.features.size(); ++at)
    most = std::max(most, table.slowdown(tree.scheduleAt(table.features[at]), at));
  return most;
}

} // namespace

TEST_CASE("size choice: one schedule is the one that is nowhere slow") {
  const SizeTable table{{{1}, {10}, {100}}, {{1, 10, 100}, {3, 6, 40}, {1.5, 7, 50}}};
  const SizeTree tree = sizeTree(table, 1);
  REQUIRE(tree.isLeaf());
  CHECK(tree.schedule == 2);
}

TEST_CASE("size choice: what runs beside it says which sizes matter") {
  SizeTable table{{{1}, {10}, {100}}, {{1, 10, 100}, {2, 10, 50}, {4, 9, 25}}, {}};
  CHECK(sizeTree(table, 1).schedule == 1);
  table.others = {1000, 100, 0};
  CHECK(sizeTree(table, 1).schedule == 2);
  CHECK(table.slowdown(0, 2) == 4);
  CHECK(table.slowdown(2, 0) == 1004. / 1001);
  table.others = {0, 100, 1000};
  CHECK(sizeTree(table, 1).schedule == 0);
}

TEST_CASE("size choice: cuts lie half way between sizes") {
  // Rows alone, tiles of rows, large tiles; a fourth one is nowhere the fastest.
  SizeTable table{{{1}, {4}, {16}, {64}, {256}}, {{}, {}, {}, {}}};
  for (const auto &size : table.features) {
    const auto n = static_cast<double>(size[0]);
    table.seconds[0].push_back(n);
    table.seconds[1].push_back(6 + n / 4);
    table.seconds[2].push_back(30 + n / 40);
    table.seconds[3].push_back(70 + n);
  }
  const SizeTree tree = sizeTree(table, 3);
  CHECK(tree.schedules() == std::vector<size_t>{0, 1, 2});
  CHECK(worst(table, tree) == 1);
  CHECK(tree.leaves() == 3);
  CHECK(tree.scheduleAt({7}) == 0);
  CHECK(tree.scheduleAt({8}) == 1);
  CHECK(tree.scheduleAt({127}) == 1);
  CHECK(tree.scheduleAt({128}) == 2);
}

TEST_CASE("size choice: tests on products, and on two sizes where one does not tell") {
  // What matters is batch * length, the last feature.
  SizeTable rows;
  rows.seconds.resize(2);
  for (int64_t batch : {1, 2, 4, 8})
    for (int64_t length : {1, 4, 16, 64}) {
      rows.features.push_back({batch, length, batch * length});
      rows.seconds[0].push_back(double(batch * length));
      rows.seconds[1].push_back(10 + double(batch * length) / 10);
    }
  const SizeTree byRows = sizeTree(rows, 2);
  REQUIRE(!byRows.isLeaf());
  CHECK(byRows.feature == 2);
  CHECK(worst(rows, byRows) <= kMostSlower);
  CHECK(byRows.leaves() == 2);

  // Fast where both are small or both are large: no single cut helps.
  SizeTable both;
  both.seconds.resize(2);
  for (int64_t x : {1, 100})
    for (int64_t y : {1, 100}) {
      both.features.push_back({x, y});
      both.seconds[0].push_back(x == y ? 1 : 2);
      both.seconds[1].push_back(x == y ? 2 : 1);
    }
  const SizeTree byBoth = sizeTree(both, 4);
  CHECK(worst(both, byBoth) == 1);
  CHECK(byBoth.leaves() <= 4);
}

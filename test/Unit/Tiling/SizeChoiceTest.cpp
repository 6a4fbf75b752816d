// Which schedules for which sizes (search/SizeChoice.h).
#include "Tiling/search/SizeChoice.h"

#include <catch2/catch_all.hpp>

using namespace fusec::tiling;

namespace {

/// The schedule that a tree names for these features.
int scheduleAt(const SizeTree &tree, const std::vector<int64_t> &features) {
  if (tree.isLeaf())
    return tree.schedule;
  return scheduleAt(tree.children[features[tree.feature] >= tree.threshold ? 1 : 0], features);
}

/// How much slower than the fastest schedule the worst size of the table is by the tree.
double worst(const SizeTable &table, const SizeTree &tree) {
  double most = 1;
  for (size_t at = 0; at < table.features.size(); ++at) {
    double fastest = table.seconds[0][at];
    for (const auto &of : table.seconds)
      fastest = std::min(fastest, of[at]);
    const auto chosen = static_cast<size_t>(scheduleAt(tree, table.features[at]));
    most = std::max(most, table.seconds[chosen][at] / fastest);
  }
  return most;
}

} // namespace

TEST_CASE("size choice: one schedule where none is much faster") {
  const SizeTable table{{{1}, {10}, {100}}, {{1, 10, 100}, {1.05, 9.5, 92}}};
  CHECK(fewestSchedules(table).size() == 1);
  CHECK(sizeTree(table, fewestSchedules(table)).isLeaf());
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
  const std::vector<size_t> chosen = fewestSchedules(table);
  CHECK(chosen == std::vector<size_t>{0, 1, 2});
  const SizeTree tree = sizeTree(table, chosen);
  CHECK(worst(table, tree) <= kMostSlower);
  CHECK(tree.leaves() == 3);
  CHECK(scheduleAt(tree, {7}) == 0);
  CHECK(scheduleAt(tree, {8}) == 1);
  CHECK(scheduleAt(tree, {127}) == 1);
  CHECK(scheduleAt(tree, {128}) == 2);
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
  const SizeTree byRows = sizeTree(rows, fewestSchedules(rows));
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
  const SizeTree byBoth = sizeTree(both, fewestSchedules(both));
  CHECK(worst(both, byBoth) <= kMostSlower);
  CHECK(byBoth.leaves() <= 4);
}

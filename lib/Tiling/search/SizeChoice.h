#pragma once
// Chooses between schedules by sizes: a table of seconds in, a decision tree out.
#include <cstdint>
#include <string>
#include <vector>

namespace fusec::tiling {

/// What schedules take at sizes.
struct SizeTable {
  /// The features of each size: extents and products of them.
  std::vector<std::vector<int64_t>> features;
  std::vector<std::vector<double>> seconds; // of each schedule, at each size
};

/// A tree of tests on features. A leaf names a schedule.
struct SizeTree {
  int schedule = -1; // of a leaf
  // What is none has two children, `atLeast` where the feature is at least the threshold, else `below`.
  size_t feature = 0;
  int64_t threshold = 0;
  std::vector<SizeTree> children = {}; // below, atLeast

  bool isLeaf() const { return children.empty(); }
  int leaves() const { return isLeaf() ? 1 : children[0].leaves() + children[1].leaves(); }
};

/// Schedules may be so much slower than the fastest before another one is taken beside them: the numbers of code and of
/// compile time that a model takes grow with each.
constexpr double kMostSlower = 1.1;
constexpr size_t kMostSchedules = 4;
constexpr int kMostLeaves = 4;

/// The fewest schedules that are nowhere more than kMostSlower times as slow as the fastest of all, or else the
/// kMostSchedules that come nearest to it; ascending.
std::vector<size_t> fewestSchedules(const SizeTable &table);

/// A tree whose leaves are these schedules, split until no size is slower than kMostSlower times what it could be. Cuts
/// lie half way, by their ratio, between sizes.
SizeTree sizeTree(const SizeTable &table, const std::vector<size_t> &schedules);

} // namespace fusec::tiling

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
  /// Seconds of all else that runs, at each size: a schedule that is twice as slow matters less beside more of it.
  /// Empty: nothing else.
  std::vector<double> others = {};

  double fastest(size_t at) const;
  /// How much longer all takes at a size with this schedule than with the fastest.
  double slowdown(size_t schedule, size_t at) const;
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
  /// The schedules that its leaves name, ascending.
  std::vector<size_t> schedules() const;
  size_t scheduleAt(const std::vector<int64_t> &features) const;
};

/// All that runs may be so much slower than with the fastest schedules before more of them are taken: the numbers of
/// code and of compile time grow with each.
constexpr double kMostSlower = 1.05;
constexpr int kMostLeaves = 4;

/// A tree of so many leaves at most whose schedules are as near to the fastest as can be. Cuts lie half way, by their
/// ratio, between sizes.
SizeTree sizeTree(const SizeTable &table, int leaves);

} // namespace fusec::tiling

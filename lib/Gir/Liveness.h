#pragma once
#include "Gir/Gir.h"

#include <algorithm>
#include <span>

namespace fusec {

/// Points of a kernel from the first to the last one, both included.
struct LiveRange {
  int first = INT32_MAX, last = -1;
  bool empty() const { return last < first; }
  bool overlaps(const LiveRange &other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
  void include(int from, int to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

/// When the buffers of one level are live. A statement has two points: it reads at the first one and writes registers
/// at the second one, so that what it reads for the last time leaves its registers to what it makes.
struct Liveness {
  /// By buffer of the kernel, where it holds what is still wanted; none for those of other levels. Several where
  /// branches of an If begin anew.
  std::vector<std::vector<LiveRange>> buffers;
  std::vector<LiveRange> loops; // that repeat their statements
  std::vector<int> at;          // first points of the statements, in text order
  int end = 0;                  // behind all points

  /// A value that is used both inside a loop and outside it lives through the whole loop.
  LiveRange closeOverLoops(LiveRange range) const;
  /// Registers of 32 bits that hold live Register buffers at each point; those of `except` do not count.
  std::vector<double> registersAt(const GirKernel &kernel, BufferId except = -1) const;
};
Liveness livenessOf(const GirKernel &kernel, std::span<const Phase> phases, MemLevel level);

/// A buffer in a block's memory: when it is live, and where it begins.
struct PlacedBuffer {
  std::vector<LiveRange> ranges;
  int64_t bytes = 0, alignBytes = kSharedAlignment;
  int64_t offsetBytes = 0;
};
/// Gives each its offset, so that those that are live at once lie apart; the bytes of all.
int64_t placeBuffers(std::span<PlacedBuffer> buffers);

/// A number of registers and the range in which they are live.
struct HeldRegisters {
  LiveRange range;
  double registers;
};
/// The number of live registers at each point up to `end`.
std::vector<double> heldAt(const std::vector<HeldRegisters> &held, int end);

/// Registers of 32 bits for `elements` values, at least one for each.
int64_t registersFor(int64_t elements, DType type);

} // namespace fusec

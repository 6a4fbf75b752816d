#pragma once
// Borders of phases without a barrier of the whole grid: a block of the phase behind waits for those blocks of the
// phases in front that make what it reads, and for no others (per-tile counters, as persistent megakernels have them).
#include "Tiling/schedule/BoundSchedule.h"

namespace fusec::tiling {

/// Counters of the blocks of one part of a phase (a phase has several where it is a pack): one for each tile of `axes`,
/// row-major; all blocks that make something of a tile raise its counter once.
struct SignalSet {
  size_t phase = 0, part = 0;
  std::vector<size_t> axes;       // of the part's loops over blocks, by position, outermost first
  std::vector<DimExpr> trips;     // of these loops
  DimExpr count = 1, signals = 1; // number of counters; blocks that raise each
};

/// What each block of a part waits for: for every one of the set's axes the first and last tile, expressions of
/// `bounds`, in which Axis k is the number of the part's k-th loop over blocks.
struct SignalWait {
  size_t phase = 0, part = 0;
  size_t set = 0;
  Body bounds;
  std::vector<std::pair<NodeId, NodeId>> tiles;
};

struct PhaseSignals {
  std::vector<SignalSet> sets;
  std::vector<SignalWait> waits;
  /// Why the borders need barriers; then there is nothing else.
  std::vector<std::string> problems;
};

/// The counters that the `counters` borders of a schedule stand for.
PhaseSignals phaseSignals(const BoundSchedule &bound);

} // namespace fusec::tiling

#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace fusec::rt {

/// Whether a phase that runs again and again is worth to be handed to other threads, which are awake since it ran last:
/// tried both ways in turns, then done the faster way. After a while it is tried anew, since what else the machine does
/// changes. What it computes is the same either way.
class ParallelTrial {
public:
  static constexpr int32_t kTurn = 4, kTrials = 4 * kTurn, kRuns = 1024;
  // A phase that takes this long on several threads is not tried on one: to hand it out is nothing beside it.
  static constexpr int64_t kLongCycles = 100000;

  /// True: the time of the next run is wanted.
  bool isTrial() const { return run < kTurn || (run < kTrials && lowest[1] < kLongCycles); }
  /// True: the next run is one for several threads.
  bool shares() const {
    return isTrial() ? run / kTurn % 2 == 0 : lowest[1] >= kLongCycles || lowest[1] < lowest[0];
  }
  /// The next run took so long; the cycles count if it was a trial.
  void ran(int64_t cycles) {
    if (isTrial()) {
      int64_t &seen = lowest[shares()];
      seen = std::min(seen, cycles);
    }
    if (++run == kRuns)
      *this = {};
  }

private:
  std::array<int64_t, 2> lowest = {INT64_MAX, INT64_MAX}; // on one thread, on several
  int32_t run = 0;
};

} // namespace fusec::rt

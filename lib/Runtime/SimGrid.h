#pragma once
#include "Runtime/Device.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace fusec::rt {

/// What the blocks of a kernel whose phases wait for counters know of each other. Two of them that touch one element of
/// a parameter, one writing, must be in order: a barrier of the grid stands between, or the first one has raised a
/// counter behind its access and the other one has waited for it in front of its own, each with a barrier of the block
/// between its threads. What a third block passes on does not count, nor that one resident block ran both: another
/// number of them need not.
class SimGrid {
public:
  /// A thread of a block, after `epoch` barriers of the block that runs it.
  struct Who {
    int64_t run = -1; // of a block, from begin()
    uint32_t epoch = 0;
    int32_t thread = 0;
  };
  struct Name {
    int32_t phase;
    int64_t block;
  };

  void start(const bundle::Kernel &kernel, const Launch &launch);
  /// All blocks have come to a barrier of the grid.
  void barrier();
  /// The block's run: the same for all of its threads.
  int64_t begin(int32_t phase, int64_t block);
  Name nameOf(int64_t run) const { return runs[static_cast<size_t>(run - firstRun)].name; }
  /// Records an access to a written parameter. The block that it is not in order with, where there is one.
  std::optional<Name> access(int32_t param, uint64_t element, const Who &who, bool write);

  static bool isCounter(int64_t counter) {
    return counter >= 0 && counter < int64_t{FUSEC_GRID_COUNTERS};
  }
  void signal(int64_t counter, const Who &who);
  int64_t valueOf(int64_t counter) const;
  bool reached(int64_t first, int64_t last, int64_t count) const;
  void waited(int64_t first, int64_t last, int64_t count, const Who &who);
  /// At the end of the kernel: a wait for less than its counter came to, which other blocks might have missed.
  std::string miscount() const;

private:
  struct Cell {
    int64_t writer = -1, reader = -1; // runs
    uint32_t writeEpoch = 0;
    int32_t writeThread = 0;
    bool manyReaders = false;
  };
  struct Signal {
    int64_t counter;
    uint32_t epoch;
  };
  struct Wait {
    int64_t first, last;
    uint32_t epoch;
  };
  struct Run {
    Name name;
    std::vector<Signal> signals;
    std::vector<Wait> waits;
  };
  bool ordered(const Cell &cell, const Who &who) const;

  std::vector<Run> runs; // since the last barrier of the grid
  int64_t firstRun = 0;
  std::map<std::pair<int32_t, int64_t>, int64_t> numbers;       // (phase, block) -> run
  std::vector<std::unordered_map<uint64_t, Cell>> cells;        // by parameter and element
  std::map<int64_t, int64_t> counts;                            // of counters
  std::map<std::pair<int64_t, int64_t>, int64_t> awaitedCounts; // (first, last) -> count
  bool alone = false;                                           // blocks of one thread
};

} // namespace fusec::rt

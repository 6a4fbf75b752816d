#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fusert {

/// What fusert_calibrate tells (fusec/runtime.h).
struct Figure {
  std::string what;
  int threads;
  int64_t bytes;
  double lowest, median, highest;
};

struct Measured {
  std::string device;
  std::vector<Figure> figures;
  int threads = 1; // multiprocessors of a GPU

  const Figure *find(const std::string &what, int ofThreads, int64_t bytes = 0) const;
  const Figure *first(const std::string &what) const;
  bool isGpu() const { return first("block_barrier") != nullptr; }
};

/// As the system tells of a processor.
struct Cache {
  std::string name;
  int64_t bytes; // of one core; of all together where `shared`
  bool shared;
};

/// A level of memory as lib/Target/Target.h has it: a core's own, or one of the device with the figures of the whole.
struct Level {
  std::string name;
  int64_t capacityBytes;
  double bytesPerSec;
  bool ofDevice = false;
};

/// What lib/Target's tables hold of measured constants.
struct MachineTable {
  /// In the order of the tables: "t.launchSec", seconds.
  std::vector<std::pair<std::string, double>> constants;
  std::vector<Level> memory;
  /// Seconds, rates and shares that stay as the tables have them.
  std::vector<std::string> notMeasured;
  int cores = 1;
  bool reachesMemory = true; // else the last level may be a cache's

  double constant(const std::string &name) const; // 0: not measured
};
MachineTable tableOf(const Measured &measured, const std::vector<Cache> &caches);

/// Readings that cannot be: a memory that is faster than a nearer one, a barrier of the device that takes less than a
/// block's. A sentence each.
std::vector<std::string> outOfOrder(const MachineTable &table);

} // namespace fusert

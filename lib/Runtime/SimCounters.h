#pragma once
#include "Runtime/Device.h"

#include <cstdint>
#include <map>

namespace fusec::rt {

/// What one kernel did on a sim target. A transaction is what the lanes of one unit do together with one
/// instruction; a sector is 32 bytes of global memory, a bank 4 of 128 bytes of shared memory.
struct SimCounts {
  uint64_t launches = 0, blocks = 0, threads = 0;
  /// Additions to remainders of floats: 1, fused multiply-add: 2, minima and conversions: 0.
  uint64_t flops = 0;
  uint64_t readBytes = 0, writeBytes = 0;     // global, as asked for by the threads
  uint64_t readSectors = 0, writeSectors = 0; // summed over transactions
  uint64_t tileSectors = 0; // different sectors that each block touches, summed over blocks
  uint64_t sharedBytes = 0, sharedConflicts = 0;      // conflicts: extra passes over the banks
  uint64_t barriers = 0, unitSyncs = 0, shuffles = 0; // of a block, of a unit, of a unit

  void add(const SimCounts &more);
};

/// The accesses of the lanes of one unit, put together to transactions.
class SimLog {
public:
  struct Entry {
    uint64_t address; // shared memory: offset
    int64_t iteration;
    int32_t site;
    uint16_t bytes;
    uint8_t flags;
    bool shared;
  };
  static constexpr size_t kCapacity = 1024; // entries a lane

  void start(int32_t lanes);
  bool full(int32_t lane) const { return logs[lane].size() >= kCapacity; }
  void add(int32_t lane, const Entry &e) { logs[lane].push_back(e); }
  /// Counts everything logged and forgets it.
  void flush(SimCounts &counts);

private:
  void count(const std::vector<Entry> &transaction, SimCounts &counts);
  bool lockstep() const;
  int32_t lanes = 0;
  std::vector<std::vector<Entry>> logs;
  std::vector<Entry> transaction;
  std::vector<uint64_t> units; // scratch of count(): sectors or words
};

std::string simCountersJson(const bundle::Program &program, const std::vector<SimCounts> &counts);

} // namespace fusec::rt

#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusec::rt {

/// Who touches memory when, in a simulated block. `block` is a serial number over all blocks of a run (never 0),
/// `epoch` counts the block's barriers, `unitEpoch` those of the thread's unit.
struct SimAccess {
  uint64_t block;
  uint32_t epoch, unitEpoch;
  int32_t thread, unit;
  bool write;
};

/// Last write and last reads of each granule of a piece of memory. Two accesses by different threads, one of them a
/// write, must be ordered: by a block barrier, or by a unit barrier when both are of one unit. Blocks of one phase
/// are never ordered. What blocks before `oldestBlock` did is forgotten.
class SimShadow {
public:
  enum class Found { Nothing, Uninitialised, Race };

  void reserve(size_t granules) {
    if (cells.size() < granules)
      cells.resize(granules);
  }
  /// Records an access to one granule.
  Found access(size_t granule, const SimAccess &a, uint64_t oldestBlock, bool mustBeWritten);
  /// The thread that did the other half of the race just found.
  int32_t otherThread() const { return other; }

private:
  enum Readers : uint8_t { None, One, OneUnit, Many };
  struct Cell {
    uint64_t writeBlock = 0, readBlock = 0;
    uint32_t writeEpoch = 0, writeUnitEpoch = 0, readEpoch = 0, readUnitEpoch = 0;
    int16_t writeThread = 0, writeUnit = 0, readThread = 0, readUnit = 0;
    Readers readers = None;
  };
  bool unorderedWrite(const Cell &c, const SimAccess &a);
  bool unorderedRead(const Cell &c, const SimAccess &a);
  std::vector<Cell> cells;
  int32_t other = 0;
};

} // namespace fusec::rt

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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

  /// What conflict() looks through: granules accessed from here on.
  void forgetRange() { first = SIZE_MAX, last = 0; }
  struct Conflict {
    size_t granule;
    uint64_t block, otherBlock;
  };
  /// The first granule that blocks from `oldest` on in one shadow and blocks from `otherOldest` on in the other
  /// touched, one of them writing. The two number their blocks apart.
  static std::optional<Conflict> conflict(const SimShadow &one, uint64_t oldest,
                                          const SimShadow &two, uint64_t otherOldest);

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
  size_t first = SIZE_MAX, last = 0; // granules accessed since forgetRange()
};

inline bool SimShadow::unorderedWrite(const Cell &c, const SimAccess &a) {
  if (c.writeBlock == 0 || (c.writeBlock == a.block && c.writeThread == a.thread))
    return false;
  other = c.writeThread;
  if (c.writeBlock != a.block)
    return true;
  return c.writeEpoch == a.epoch && !(c.writeUnit == a.unit && c.writeUnitEpoch < a.unitEpoch);
}

inline bool SimShadow::unorderedRead(const Cell &c, const SimAccess &a) {
  if (c.readers == None || (c.readers == One && c.readBlock == a.block && c.readThread == a.thread))
    return false;
  other = c.readThread;
  if (c.readBlock != a.block)
    return true;
  return c.readEpoch == a.epoch &&
         !(c.readers != Many && c.readUnit == a.unit && c.readUnitEpoch < a.unitEpoch);
}

inline SimShadow::Found SimShadow::access(size_t granule, const SimAccess &a, uint64_t oldestBlock,
                                          bool mustBeWritten) {
  Cell &c = cells[granule];
  first = std::min(first, granule);
  last = std::max(last, granule);
  if (c.writeBlock < oldestBlock)
    c.writeBlock = 0;
  if (c.readBlock < oldestBlock)
    c.readers = None;
  if (mustBeWritten && !a.write && c.writeBlock == 0)
    return Found::Uninitialised;
  if (unorderedWrite(c, a))
    return Found::Race;
  if (a.write) {
    if (unorderedRead(c, a))
      return Found::Race;
    c.writeBlock = a.block;
    c.writeEpoch = a.epoch;
    c.writeUnitEpoch = a.unitEpoch;
    c.writeThread = static_cast<int16_t>(a.thread);
    c.writeUnit = static_cast<int16_t>(a.unit);
    return Found::Nothing;
  }
  const bool sameEpoch = c.readers != None && c.readBlock == a.block && c.readEpoch == a.epoch;
  if (c.readers != None && c.readBlock != a.block)
    c.readers = Many; // of several blocks: a later write by any is a race
  else if (!sameEpoch)
    c.readers = One;
  else if (c.readers == One && c.readThread != a.thread)
    c.readers = c.readUnit == a.unit ? OneUnit : Many;
  else if (c.readers == OneUnit && c.readUnit != a.unit)
    c.readers = Many;
  if (c.readers == Many && c.readBlock != a.block)
    return Found::Nothing; // keeps the other block's name
  c.readBlock = a.block;
  c.readEpoch = a.epoch;
  c.readUnitEpoch = a.unitEpoch;
  c.readThread = static_cast<int16_t>(a.thread);
  c.readUnit = static_cast<int16_t>(a.unit);
  return Found::Nothing;
}

inline std::optional<SimShadow::Conflict> SimShadow::conflict(const SimShadow &one, uint64_t oldest,
                                                              const SimShadow &two,
                                                              uint64_t otherOldest) {
  const auto written = [](const Cell &c, uint64_t from) {
    return c.writeBlock >= from ? c.writeBlock : 0;
  };
  const auto touched = [&](const Cell &c, uint64_t from) {
    const uint64_t block = written(c, from);
    return block == 0 && c.readers != None && c.readBlock >= from ? c.readBlock : block;
  };
  for (size_t g = std::max(one.first, two.first); g <= std::min(one.last, two.last); ++g) {
    const Cell &a = one.cells[g], &b = two.cells[g];
    if (written(a, oldest) != 0 && touched(b, otherOldest) != 0)
      return Conflict{g, written(a, oldest), touched(b, otherOldest)};
    if (written(b, otherOldest) != 0 && touched(a, oldest) != 0)
      return Conflict{g, touched(a, oldest), written(b, otherOldest)};
  }
  return std::nullopt;
}

} // namespace fusec::rt

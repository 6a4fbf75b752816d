#include "Reference/GirMemory.h"

#include "Gir/ResidentGrid.h"
#include "Support/Diag.h"

#include <algorithm>

namespace fusec::girvm {

Status Memory::bind(const std::vector<GirArgument> &arguments) {
  auto fail = [&](std::string text) {
    return Diagnostic{Diag::BadIr, "kernel @" + kernel.name, std::move(text)};
  };
  if (static_cast<int>(arguments.size()) != kernel.numParams())
    return fail("got " + std::to_string(arguments.size()) + " arguments for " +
                std::to_string(kernel.numParams()) + " parameters");
  unitEpochs.assign(static_cast<size_t>(kernel.units), 0);
  globalShadows.resize(kernel.buffers.size());
  const std::vector<bool> held = heldBuffers(kernel);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const GirBuffer &g = kernel.buffers[i];
    Buffer b;
    b.level = g.level;
    b.type = g.type;
    b.sizeBytes = sizeInBytes(g.type);
    for (const DimExpr &d : g.shape) {
      auto size = d.evaluate(symbols);
      if (!size || *size < 0)
        return fail("a dimension of %" + g.name + " has no value");
      b.dims.push_back(*size);
      b.elements *= *size;
    }
    if (g.level == MemLevel::Global) {
      if (arguments[i].sizeBytes < b.elements * b.sizeBytes)
        return fail("%" + g.name + " needs " + std::to_string(b.elements * b.sizeBytes) +
                    " bytes, its argument has " + std::to_string(arguments[i].sizeBytes));
      b.bytes = arguments[i].bytes;
    } else if (g.level == MemLevel::Register) {
      b.lanes = g.perLane ? kernel.lanes : 1;
      size_t cells = static_cast<size_t>(kernel.units * b.lanes * b.elements);
      b.cells.assign(cells, Cell{.i = 0});
      b.initialised.assign(cells, false);
    }
    b.held = held[i];
    buffers.push_back(std::move(b));
    if (checks && g.level == MemLevel::Global && g.written) {
      globalShadows[i].resize(static_cast<size_t>(buffers[i].elements));
      buffers[i].shadows = &globalShadows[i];
    }
  }
  layOutShared();
  firstCounter.assign(1, 0);
  for (const GirCounters &c : kernel.counters) {
    auto count = c.count.evaluate(symbols);
    if (!count)
      return fail("the number of %" + c.name + " has no value");
    firstCounter.push_back(firstCounter.back() + std::max<int64_t>(*count, 0));
  }
  counts.assign(static_cast<size_t>(firstCounter.back()), 0);
  return success();
}

/// Shared buffers lie as the allocator said, so that its mistakes show; one after the other before it ran.
void Memory::layOutShared() {
  int64_t end = 0, granule = 8;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].level == MemLevel::Shared)
      granule = std::min(granule, buffers[i].sizeBytes);
  std::vector<int64_t> offsets(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    Buffer &b = buffers[i];
    if (b.level != MemLevel::Shared)
      continue;
    bool allocated = kernel.buffers[i].offsetBytes >= 0;
    offsets[i] = allocated ? kernel.buffers[i].offsetBytes : (end + 127) / 128 * 128;
    end = std::max(end, offsets[i] + b.elements * b.sizeBytes);
  }
  shared.assign(static_cast<size_t>(end), 0);
  if (checks)
    sharedShadows.resize(static_cast<size_t>((end + granule - 1) / granule));
  for (size_t i = 0; i < buffers.size(); ++i) {
    Buffer &b = buffers[i];
    if (b.level != MemLevel::Shared)
      continue;
    b.bytes = shared.data() + offsets[i];
    b.shadows = checks ? &sharedShadows : nullptr;
    b.firstShadow = offsets[i] / granule;
    b.shadowsPerElement = b.sizeBytes / granule;
  }
}

void Memory::beginPhase(bool waiting) {
  if (waiting)
    return;
  firstUnordered = block + 1;
  signals.clear();
}

void Memory::beginBlock(int64_t number) {
  ++block;
  ++epoch;
  signals.emplace_back();
  awaits.clear();
  for (Buffer &b : buffers)
    if (b.held)
      turnTo(b, number);
    else if (b.level == MemLevel::Register)
      b.initialised.assign(b.initialised.size(), false);
}

/// The block's own of a buffer that holds values from phase to phase.
void Memory::turnTo(Buffer &held, int64_t number) {
  auto reach = [&](auto &places, int64_t each) {
    places.resize(std::max(places.size(), static_cast<size_t>((number + 1) * each)));
    return number * each;
  };
  if (held.level == MemLevel::Register) {
    const int64_t each = held.elements * held.lanes * kernel.units;
    held.firstCell = reach(held.cells, each);
    reach(held.initialised, each);
    return;
  }
  const int64_t offset = reach(held.own, held.elements * held.sizeBytes);
  held.bytes = held.own.data() + offset;
  if (!checks)
    return;
  held.firstShadow = reach(held.ownShadows, held.elements);
  held.shadowsPerElement = 1;
  held.shadows = &held.ownShadows;
}

bool Memory::isCounter(CounterId counter, int64_t index) {
  const auto set = static_cast<size_t>(counter);
  const int64_t size = firstCounter[set + 1] - firstCounter[set];
  if (index < 0 || index >= size)
    setFault("there are " + std::to_string(size) + " counters %" + kernel.counters[set].name +
             ", this is number " + std::to_string(index));
  return index >= 0 && index < size;
}

void Memory::signal(CounterId counter, int64_t index) {
  if (!isCounter(counter, index))
    return;
  const int64_t at = firstCounter[static_cast<size_t>(counter)] + index;
  ++counts[static_cast<size_t>(at)];
  signals.back().push_back({at, epoch});
}

void Memory::wait(CounterId counter, int64_t first, int64_t last, int64_t count) {
  if (first > last || !isCounter(counter, first) || !isCounter(counter, last))
    return;
  const int64_t base = firstCounter[static_cast<size_t>(counter)];
  for (int64_t i = base + first; i <= base + last; ++i)
    if (int64_t got = counts[static_cast<size_t>(i)]; got != count)
      return setFault("waits for " + std::to_string(count) + " signals of counter " +
                      std::to_string(i - base) + ", which gets " + std::to_string(got));
  awaits.push_back({base + first, base + last, epoch});
}

/// Whether the block that last wrote has told of it by a counter, behind a barrier of its threads, and this one has
/// waited for that, with a barrier behind it. What a third block passes on does not count.
bool Memory::awaited(const Shadow &s) const {
  const bool alone = kernel.units * kernel.lanes == 1;
  const auto &told = signals[static_cast<size_t>(s.writeBlock - firstUnordered)];
  return std::any_of(told.begin(), told.end(), [&](const Signal &signal) {
    return (alone || s.writeEpoch < signal.epoch) &&
           std::any_of(awaits.begin(), awaits.end(), [&](const Await &await) {
             return await.first <= signal.counter && signal.counter <= await.last &&
                    (alone || await.epoch < epoch);
           });
  });
}

Cell Memory::load(BufferId id, int64_t element, Thread by) {
  Buffer &b = buffers[id];
  if (b.level == MemLevel::Register) {
    int64_t at = cellOf(b, element, by);
    if (checks && !b.initialised[static_cast<size_t>(at)])
      setFault("reads element " + std::to_string(element) + " of register %" +
               kernel.buffers[id].name + " in lane " + std::to_string(by.lane) + " of unit " +
               std::to_string(by.unit) + " before it is written");
    return b.cells[static_cast<size_t>(at)];
  }
  if (b.shadows)
    noteRead(b, id, element, by);
  return loadCell(b.type, b.bytes + element * b.sizeBytes);
}

void Memory::store(BufferId id, int64_t element, Thread by, Cell value) {
  Buffer &b = buffers[id];
  if (b.level == MemLevel::Register) {
    int64_t at = cellOf(b, element, by);
    b.cells[static_cast<size_t>(at)] = value;
    if (checks)
      b.initialised[static_cast<size_t>(at)] = true;
    return;
  }
  if (b.shadows)
    noteWrite(b, id, element, by);
  storeCell(b.type, b.bytes + element * b.sizeBytes, value);
}

void Memory::race(BufferId id, int64_t element, const char *what) {
  setFault("element " + std::to_string(element) + " of %" + kernel.buffers[id].name + " is " +
           what);
}

/// Whether an earlier access by (unitA, laneA), in the same block and epoch, and one by `b` may be done by different
/// threads without a Unit sync between.
bool Memory::conflicts(int unitA, int laneA, int32_t unitEpochA, Thread b) const {
  bool sameUnit = kernel.units == 1 || (unitA != kAll && unitA == b.unit);
  if (!sameUnit)
    return true;
  bool sameLane = kernel.lanes == 1 || (laneA != kAll && laneA == b.lane);
  return !sameLane && unitEpochA == unitEpochs[static_cast<size_t>(std::max(b.unit, 0))];
}

void Memory::noteRead(Buffer &b, BufferId id, int64_t element, Thread by) {
  int32_t unitEpoch = unitEpochs[static_cast<size_t>(std::max(by.unit, 0))];
  for (int64_t k = 0; k < b.shadowsPerElement; ++k) {
    Shadow &s =
        (*b.shadows)[static_cast<size_t>(b.firstShadow + element * b.shadowsPerElement + k)];
    if (b.level == MemLevel::Shared && (b.held ? s.writeBlock < 0 : s.writeBlock != block))
      return race(id, element, "read before this block wrote it");
    if (b.level == MemLevel::Shared && s.writer != id)
      return race(id, element, "read after another buffer took its bytes");
    if (!b.held && s.writeBlock >= firstUnordered && s.writeBlock != block && !awaited(s))
      return race(id, element,
                  signals[static_cast<size_t>(s.writeBlock - firstUnordered)].empty()
                      ? "read by one block and written by another in the same phase"
                      : "read by one block and written by another, whose counter it does not "
                        "wait for");
    if (s.writeEpoch == epoch && conflicts(s.writeUnit, s.writeLane, s.writeUnitEpoch, by))
      return race(id, element,
                  "read by another thread than the one that wrote it, without a barrier between");
    s.manyReadBlocks = s.readBlock >= firstUnordered && (s.manyReadBlocks || s.readBlock != block);
    s.readBlock = block;
    if (s.readEpoch != epoch) {
      s.readEpoch = epoch;
      s.readUnit = static_cast<int16_t>(by.unit);
      s.readLane = static_cast<int16_t>(by.lane);
    } else if (s.readUnit != by.unit) {
      s.readUnit = s.readLane = kAll;
    } else if (s.readLane != by.lane) {
      s.readLane = static_cast<int16_t>(s.readUnitEpoch == unitEpoch ? kAll : by.lane);
    }
    s.readUnitEpoch = unitEpoch;
  }
}

void Memory::noteWrite(Buffer &b, BufferId id, int64_t element, Thread by) {
  for (int64_t k = 0; k < b.shadowsPerElement; ++k) {
    Shadow &s =
        (*b.shadows)[static_cast<size_t>(b.firstShadow + element * b.shadowsPerElement + k)];
    if (b.level == MemLevel::Global) {
      if (s.writeBlock >= firstUnordered && s.writeBlock != block)
        return race(id, element, "written by two blocks in the same phase");
      if (s.readBlock >= firstUnordered && (s.manyReadBlocks || s.readBlock != block))
        return race(id, element, "written by one block and read by another in the same phase");
    }
    if (s.writeEpoch == epoch && conflicts(s.writeUnit, s.writeLane, s.writeUnitEpoch, by))
      return race(id, element, "written by two threads without a barrier between");
    if (s.readEpoch == epoch && conflicts(s.readUnit, s.readLane, s.readUnitEpoch, by))
      return race(id, element,
                  "written by another thread than one that read it, without a barrier between");
    s.writeBlock = block;
    s.writeEpoch = epoch;
    s.writeUnitEpoch = unitEpochs[static_cast<size_t>(std::max(by.unit, 0))];
    s.writeUnit = static_cast<int16_t>(by.unit);
    s.writeLane = static_cast<int16_t>(by.lane);
    s.writer = static_cast<int16_t>(id);
  }
}

} // namespace fusec::girvm

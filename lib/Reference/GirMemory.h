#pragma once
// Memory of the Gir interpreter: buffers, bounds, and the record of who touched what since the last barrier.
#include "Reference/GirCells.h"
#include "Reference/GirInterpreter.h"

namespace fusec::girvm {

/// Stands for all units, or all lanes, of a block.
constexpr int kAll = -1;

/// Who accesses: a lane of a unit of the current block.
struct Thread {
  int unit = 0, lane = 0;
};

class Memory {
public:
  Memory(const GirKernel &kernel, const std::vector<int64_t> &symbols, bool checks)
      : kernel(kernel), checks(checks), symbols(symbols) {}
  Status bind(const std::vector<GirArgument> &arguments);

  /// `waiting`: there is no barrier between it and the phase before.
  void beginPhase(bool waiting);
  /// `number`: in its phase.
  void beginBlock(int64_t number);
  void syncBlock() { ++epoch; }
  void syncUnit(int unit) { ++unitEpochs[unit]; }

  /// What the block has made so far is there for blocks that wait for the counter.
  void signal(CounterId counter, int64_t index);
  /// A counter that is not `count` is a fault: phases run one after the other here, so that all its signals have come.
  void wait(CounterId counter, int64_t first, int64_t last, int64_t count);

  int64_t dimOf(BufferId b, size_t d) const { return buffers[b].dims[d]; }

  /// `element` is row-major and inside the buffer. `register` cells belong to (thread.unit, thread.lane).
  Cell load(BufferId b, int64_t element, Thread by);
  void store(BufferId b, int64_t element, Thread by, Cell value);

  /// What went wrong first; empty when nothing did.
  const std::string &fault() const { return faultText; }
  void setFault(std::string text) {
    if (faultText.empty())
      faultText = std::move(text);
  }

private:
  /// Last accesses to a piece of memory. An epoch is the number of Block syncs before the access, over all blocks.
  struct Shadow {
    int32_t writeBlock = -1, readBlock = -1; // number of the block's run; -1: none
    int32_t writeEpoch = -1, readEpoch = -1;
    int32_t writeUnitEpoch = 0, readUnitEpoch = 0; // Unit syncs of that unit before the access
    int16_t writeUnit = 0, writeLane = 0, readUnit = 0, readLane = 0;
    int16_t writer = -1;         // buffer: shared ones may have bytes in common
    bool manyReadBlocks = false; // more than one block read it since readBlock's phase began
  };
  struct Buffer {
    MemLevel level = MemLevel::Global;
    DType type = DType::F32;
    int64_t sizeBytes = 0; // of an element
    std::vector<int64_t> dims;
    int64_t elements = 1;
    uint8_t *bytes = nullptr;      // Global, Shared
    std::vector<Cell> cells;       // Register: [unit][element][lane]
    std::vector<bool> initialised; // Register
    int lanes = 1;                 // Register: copies a unit
    std::vector<Shadow> *shadows = nullptr;
    int64_t firstShadow = 0, shadowsPerElement = 1;
    bool held = false; // from phase to phase: each block has one of its own, in `own` or in `cells`
    std::vector<uint8_t> own;
    std::vector<Shadow> ownShadows;
    int64_t firstCell = 0; // Register
  };

  void layOutShared();
  void turnTo(Buffer &held, int64_t number);
  static int64_t cellOf(const Buffer &b, int64_t element, Thread by) {
    return b.firstCell + (by.unit * b.elements + element) * b.lanes + (b.lanes > 1 ? by.lane : 0);
  }
  void noteRead(Buffer &b, BufferId id, int64_t element, Thread by);
  void noteWrite(Buffer &b, BufferId id, int64_t element, Thread by);
  bool conflicts(int unitA, int laneA, int32_t unitEpochA, Thread b) const;
  void race(BufferId id, int64_t element, const char *what);
  bool isCounter(CounterId counter, int64_t index);
  bool awaited(const Shadow &s) const;

  const GirKernel &kernel;
  bool checks;
  const std::vector<int64_t> &symbols;
  std::vector<Buffer> buffers;
  std::vector<uint8_t> shared;
  std::vector<std::vector<Shadow>> globalShadows;
  std::vector<Shadow> sharedShadows;
  std::vector<int32_t> unitEpochs;
  int32_t epoch = 0, block = -1;
  int32_t firstUnordered = 0; // block that no barrier of the device stands behind
  /// Counters that blocks since `firstUnordered` have raised, and those that the current one has waited for.
  struct Signal {
    int64_t counter;
    int32_t epoch;
  };
  struct Await {
    int64_t first, last;
    int32_t epoch;
  };
  std::vector<std::vector<Signal>> signals; // by block, from firstUnordered on
  std::vector<Await> awaits;
  std::vector<int64_t> counts;       // of all counters, one set after the other
  std::vector<int64_t> firstCounter; // of each set, and the end
  std::string faultText;
};

} // namespace fusec::girvm

#pragma once
#include "Runtime/Fiber.h"
#include "Runtime/SimCounters.h"
#include "Runtime/SimGrid.h"
#include "Runtime/SimRandom.h"
#include "Runtime/SimShadow.h"

#include <string>

namespace fusec::rt {

/// Runs blocks of one kernel phase of a sim target, one after the other: every GPU thread is a fiber. Checks every
/// access and every barrier. Threads run in order, each up to its next rendezvous (a lane waits for its unit, a unit
/// for its block), or, with a seed, in an order drawn from it, with changes of thread in front of accesses as well.
class SimBlockRunner {
public:
  SimBlockRunner(bool counting, uint64_t seed) : counting(counting), seed(seed) {}

  struct Entry {
    void *function;
    int64_t sharedBytes; // of its blocks
  };
  /// Before the blocks of a phase. `phaseNumber` counts the phases that the queue has run.
  /// `grid`: of a kernel whose phases wait for counters, in its entry for all phases; else null.
  fusert_status startPhase(const bundle::Kernel &kernel, int32_t phase, const Launch &launch,
                           const Entry &entry, uint64_t phaseNumber, SimGrid *grid = nullptr);
  /// False when the block did not end well: see failure().
  bool runBlock(int64_t block);

  /// A block of an entry for all phases (after startPhase): it runs from one barrier of the grid to the next, or until
  /// it has to wait for counters.
  enum class Stop { GridBarrier, Counters, Done, Failed };
  Stop startBlock(int64_t block);
  /// Past the barrier that it waits at, once all blocks have come.
  Stop goOn();
  /// Whether the counters have come to what it waits for, and past them.
  bool countersReached() const;
  Stop goOnCounting();
  /// This runner fails: nothing will raise the counters that it waits for.
  void reportWait();
  /// This runner fails for a reason that concerns all blocks.
  void report(const std::string &what) { broken(what); }
  /// This runner fails: its block waits at the grid's barrier while `other` has ended, or at another one.
  void reportDeadlock(int64_t block, int64_t other);
  /// Where it stopped; the same for all blocks or a deadlock.
  int32_t stoppedAt() const { return threads[0].site; }

  enum class Failure { None, BrokenRule, KernelStatus, NoMemory };
  Failure failure() const { return failed; }
  int32_t kernelStatus() const { return status; }
  const std::string &message() const { return text; } // BrokenRule
  /// What the blocks since startPhase() did.
  const SimCounts &phaseCounts() const { return counts; }
  /// Finds two blocks of this phase, one run here and one by `other`, that touched the same element, one of them
  /// writing. False, and this runner fails, when there are.
  bool independentOf(const SimBlockRunner &other);

private:
  enum class State : uint8_t {
    Ready,
    BlockSync,
    GridSync,
    CounterWait, // of the first thread alone
    UnitSync,
    Shuffle,
    LogFull,
    Done
  };
  struct Thread {
    fusec_sim_thread visible{}; // first: hooks get a pointer to it
    SimBlockRunner *runner = nullptr;
    void *stack = nullptr;
    State state = State::Ready;
    int32_t site = 0;     // where it waits
    int32_t laneMask = 0; // Shuffle
    uint64_t bits = 0;    // Shuffle: in and out
    int32_t unit = 0, lane = 0;
    SimAccess who{};  // for the shadows; `write` is set at each access
    int64_t run = -1; // of its block, where there is a SimGrid
  };
  struct Unit {
    uint32_t epoch = 0;
    int32_t running = 0; // lanes that are Ready, with a seed
    SimLog log;
  };
  struct Parameter {
    uint64_t begin = 0, end = 0;
    int64_t elementBytes = 1;
    bool written = false;
    SimShadow shadow;                  // of elements, when written
    std::vector<uint64_t> sectorBlock; // last block that touched each sector, when counting
  };

  static const fusec_sim_hooks hooks;
  static void threadMain(void *thread);
  static void onAccess(fusec_sim_thread *t, const void *address, int32_t bytes, int32_t flags,
                       int32_t param, int64_t iteration, int32_t site);
  static void onBlockSync(fusec_sim_thread *t, int32_t site);
  static void onGridSync(fusec_sim_thread *t, int32_t site);
  static void onBeginBlock(fusec_sim_thread *t, int32_t phase, int64_t block, int32_t site);
  static void onSignal(fusec_sim_thread *t, int64_t counter, int32_t site);
  static void onWait(fusec_sim_thread *t, int64_t first, int64_t last, int64_t count, int32_t site);
  static void onUnitSync(fusec_sim_thread *t, int32_t site);
  static uint64_t onShuffle(fusec_sim_thread *t, uint64_t bits, int32_t laneMask, int32_t site);
  static void onFail(fusec_sim_thread *t, int32_t status, int32_t site);

  // SimBlock.cpp
  void startThreads(int64_t block);
  void resume(Thread &t) { fusertSwitchFiber(&scheduler, t.stack); }
  void park(Thread &t, State state, int32_t site); // returns when the thread may go on
  // Until no thread is Ready or waits for its unit; false: a thread or a rule failed.
  bool runInOrder();
  bool runShuffled();
  /// Where no lane of the unit is Ready: brings them on when they wait for each other.
  enum class Settled { GoesOn, Waits, Broken };
  Settled settle(int32_t unit);
  bool rendezvous(int32_t unit, State state);
  /// From one barrier of the block to the next until the block is done or waits for the grid.
  Stop runOn();
  bool blockBarrier();
  void finishBlock();
  void noteEpochs(Thread &t) const;
  SimGrid::Who inGrid(const Thread &t) const { return {t.run, epoch, t.visible.thread}; }
  [[noreturn]] void giveUp(Thread &t); // the fiber is not continued

  // SimChecks.cpp: false when a rule is broken, which is then noted.
  bool checkAccess(Thread &t, uint64_t address, int32_t bytes, int32_t flags, int32_t param,
                   int32_t site);
  bool checkGlobal(Thread &t, Parameter &p, uint64_t offset, int32_t bytes, int32_t flags,
                   int32_t param, int32_t site);
  bool checkShared(Thread &t, uint64_t address, int32_t bytes, int32_t flags, int32_t site);
  bool broken(const Thread &t, int32_t site, const std::string &what);
  bool broken(const std::string &what);

  const bool counting;
  const uint64_t seed; // 0: in order
  SimRandom random;
  FiberStacks stacks;
  std::vector<Thread> threads;
  std::vector<int32_t> ready; // with a seed: threads that are Ready
  std::vector<Unit> units;
  std::vector<Parameter> parameters;
  std::vector<uint8_t> sharedMemory; // with room to align it
  uint8_t *shared = nullptr;
  size_t sharedBytes = 0;
  SimShadow sharedShadow;
  const bundle::Kernel *kernel = nullptr;
  int32_t phase = 0;
  const Launch *launch = nullptr;
  fusec_sim_kernel entry = nullptr;
  SimGrid *grid = nullptr;
  struct {
    int64_t first = 0, last = 0, count = 0;
  } awaited; // while the first thread is in CounterWait
  SimCounts counts;
  uint64_t phaseNumber = 0;
  uint64_t serial = 0;              // blocks run so far, over all launches
  uint64_t sharedSerial = 0;        // the one whose shared memory has its values
  uint64_t phaseSerial = 1;         // the first one of this phase
  std::vector<int64_t> phaseBlocks; // numbers of the blocks of this phase
  uint32_t epoch = 0;
  void *scheduler = nullptr; // stack pointer while a thread runs
  bool stopped = false;
  Failure failed = Failure::None;
  int32_t status = 0;
  std::string text;
};

} // namespace fusec::rt

#pragma once
#include "Runtime/Fiber.h"
#include "Runtime/SimCounters.h"
#include "Runtime/SimShadow.h"

#include <string>

namespace fusec::rt {

/// Runs the blocks of one kernel phase of a sim target: every GPU thread is a fiber, lanes of a unit run one after
/// the other up to their next rendezvous. Checks every access and every barrier.
class SimBlockRunner {
public:
  explicit SimBlockRunner(bool counting) : counting(counting) {}

  /// Before the blocks of a phase.
  fusert_status startPhase(const bundle::Kernel &kernel, int32_t phase, const Launch &launch,
                           void *entry, SimCounts &counts);
  /// FUSERT_OK, FUSERT_CHECK_FAILED, or FUSERT_OUT_OF_RANGE with kernelStatus() set.
  fusert_status runBlock(int64_t block);
  int32_t kernelStatus() const { return status; }

private:
  enum class State : uint8_t { Ready, BlockSync, UnitSync, Shuffle, LogFull, Done };
  struct Thread {
    fusec_sim_thread visible{}; // first: hooks get a pointer to it
    SimBlockRunner *runner = nullptr;
    void *stack = nullptr;
    State state = State::Ready;
    int32_t site = 0;     // where it waits
    int32_t laneMask = 0; // Shuffle
    uint64_t bits = 0;    // Shuffle: in and out
    int32_t unit = 0, lane = 0;
    SimAccess who{}; // for the shadows; `write` is set at each access
  };
  struct Unit {
    uint32_t epoch = 0;
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
                       int32_t param, int32_t site);
  static void onBlockSync(fusec_sim_thread *t, int32_t site);
  static void onUnitSync(fusec_sim_thread *t, int32_t site);
  static uint64_t onShuffle(fusec_sim_thread *t, uint64_t bits, int32_t laneMask, int32_t site);
  static void onFail(fusec_sim_thread *t, int32_t status, int32_t site);

  void park(Thread &t, State state, int32_t site); // returns when the thread may go on
  void checkGlobal(Thread &t, uint64_t address, int32_t bytes, int32_t flags, int32_t param,
                   int32_t site);
  void checkShared(Thread &t, uint64_t address, int32_t bytes, int32_t flags, int32_t site);
  [[noreturn]] void violation(Thread &t, const std::string &what, int32_t site);
  bool
  runUnit(int32_t unit); // until all its lanes wait at a block barrier or are done; false: stopped
  bool rendezvous(int32_t unit, State state);
  bool report(const std::string &what);
  void noteEpochs(Thread &t) const;

  const bool counting;
  FiberStacks stacks;
  std::vector<Thread> threads;
  std::vector<Unit> units;
  std::vector<Parameter> parameters;
  std::vector<uint8_t> sharedMemory; // with room to align it to 128
  uint8_t *shared = nullptr;
  SimShadow sharedShadow;
  const bundle::Kernel *kernel = nullptr;
  int32_t phase = 0;
  const Launch *launch = nullptr;
  fusec_sim_kernel entry = nullptr;
  SimCounts *counts = nullptr;
  uint64_t serial = 0;      // blocks run so far, over all launches
  uint64_t phaseSerial = 1; // the first one of this phase
  uint32_t epoch = 0;
  void *scheduler = nullptr; // stack pointer while a thread runs
  bool stopped = false;
  int32_t status = 0;
  std::string message;
};

} // namespace fusec::rt

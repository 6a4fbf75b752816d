// What a simulated kernel calls. Hooks run on a fiber's stack. Nothing may be alive there that has a destructor when a
// fiber is given up, and no exception may reach the kernel's frames, which have no unwind tables.
#include "Runtime/SimBlock.h"

#include <new>

namespace fusec::rt {

const fusec_sim_hooks SimBlockRunner::hooks = {sizeof(fusec_sim_hooks),
                                               0,
                                               onAccess,
                                               onBlockSync,
                                               onUnitSync,
                                               onShuffle,
                                               onFail,
                                               onGridSync,
                                               onBeginBlock,
                                               onSignal,
                                               onWait};

void SimBlockRunner::onAccess(fusec_sim_thread *visible, const void *address, int32_t bytes,
                              int32_t flags, int32_t param, int64_t iteration, int32_t site) {
  Thread &t = *reinterpret_cast<Thread *>(visible);
  SimBlockRunner &r = *t.runner;
  if (r.seed != 0 && r.random.below(4) == 0)
    r.park(t, State::Ready, site);
  bool good = false;
  try {
    good = r.checkAccess(t, reinterpret_cast<uint64_t>(address), bytes, flags, param, site);
  } catch (const std::bad_alloc &) {
    r.failed = Failure::NoMemory;
  }
  if (!good)
    r.giveUp(t);
  if (!r.counting)
    return;
  SimLog &log = r.units[static_cast<size_t>(t.unit)].log;
  if (log.full(t.lane))
    r.park(t, State::LogFull, site);
  const uint64_t base = param >= 0 ? r.parameters[static_cast<size_t>(param)].begin
                                   : reinterpret_cast<uint64_t>(r.shared);
  log.add(t.lane, {reinterpret_cast<uint64_t>(address) - base, iteration, site,
                   static_cast<uint16_t>(bytes), static_cast<uint8_t>(flags), param < 0});
}

void SimBlockRunner::onBlockSync(fusec_sim_thread *t, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->park(thread, State::BlockSync, site);
}

void SimBlockRunner::onGridSync(fusec_sim_thread *t, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->park(thread, State::GridSync, site);
}

void SimBlockRunner::onBeginBlock(fusec_sim_thread *t, int32_t phase, int64_t block, int32_t) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  SimBlockRunner &r = *thread.runner;
  try {
    thread.run = r.grid->begin(phase, block);
  } catch (const std::bad_alloc &) {
    r.failed = Failure::NoMemory;
    r.giveUp(thread);
  }
}

void SimBlockRunner::onSignal(fusec_sim_thread *t, int64_t counter, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  SimBlockRunner &r = *thread.runner;
  bool good = SimGrid::isCounter(counter);
  try {
    if (!good)
      r.broken(thread, site, "signal of counter " + std::to_string(counter));
    else if (t->thread == 0)
      r.grid->signal(counter, r.inGrid(thread));
  } catch (const std::bad_alloc &) {
    r.failed = Failure::NoMemory;
    good = false;
  }
  if (!good)
    r.giveUp(thread);
}

/// The first thread waits for all counters; the others know of it after the next barrier of the block.
void SimBlockRunner::onWait(fusec_sim_thread *t, int64_t first, int64_t last, int64_t count,
                            int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  SimBlockRunner &r = *thread.runner;
  if (t->thread != 0 || first > last)
    return;
  bool good = SimGrid::isCounter(first) && SimGrid::isCounter(last);
  r.awaited = {first, last, count};
  while (good && !r.countersReached())
    r.park(thread, State::CounterWait, site);
  try {
    if (!good)
      r.broken(thread, site,
               "wait for counters " + std::to_string(first) + " to " + std::to_string(last));
    else
      r.grid->waited(first, last, count, r.inGrid(thread));
  } catch (const std::bad_alloc &) {
    r.failed = Failure::NoMemory;
    good = false;
  }
  if (!good)
    r.giveUp(thread);
}

void SimBlockRunner::onUnitSync(fusec_sim_thread *t, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->park(thread, State::UnitSync, site);
}

uint64_t SimBlockRunner::onShuffle(fusec_sim_thread *t, uint64_t bits, int32_t laneMask,
                                   int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  SimBlockRunner &r = *thread.runner;
  if (laneMask < 0 || laneMask >= r.kernel->lanes) {
    try {
      r.broken(thread, site, "shuffle with lane mask " + std::to_string(laneMask));
    } catch (const std::bad_alloc &) {
      r.failed = Failure::NoMemory;
    }
    r.giveUp(thread);
  }
  thread.bits = bits;
  thread.laneMask = laneMask;
  r.park(thread, State::Shuffle, site);
  return thread.bits;
}

void SimBlockRunner::onFail(fusec_sim_thread *t, int32_t status, int32_t) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->status = status;
  thread.runner->giveUp(thread);
}

} // namespace fusec::rt

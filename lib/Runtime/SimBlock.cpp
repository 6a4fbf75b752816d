#include "Runtime/SimBlock.h"

#include <cstring>
#include <new>

namespace fusec::rt {

fusert_status SimBlockRunner::startPhase(const bundle::Kernel &k, int32_t p, const Launch &l,
                                         const Entry &of, uint64_t number, SimGrid *ofGrid) {
  kernel = &k;
  grid = ofGrid;
  phase = p;
  launch = &l;
  entry = reinterpret_cast<fusec_sim_kernel>(of.function);
  phaseNumber = number;
  counts = {};
  failed = Failure::None;
  const int32_t count = k.units * k.lanes;
  if (fusert_status reserved = stacks.reserve(count); reserved != FUSERT_OK)
    return reserved;
  threads.resize(static_cast<size_t>(count));
  ready.reserve(static_cast<size_t>(count));
  units.resize(static_cast<size_t>(k.units));
  sharedBytes = static_cast<size_t>(of.sharedBytes);
  // An odd multiple: no better aligned than the kernel asks for.
  const auto align = static_cast<uintptr_t>(k.sharedAlign);
  sharedMemory.resize(sharedBytes + 2 * align);
  shared = reinterpret_cast<uint8_t *>(
      ((reinterpret_cast<uintptr_t>(sharedMemory.data()) + align - 1) / align | 1) * align);
  sharedShadow.reserve(sharedBytes);
  phaseSerial = serial + 1;
  phaseBlocks.clear();
  parameters.resize(k.params.size());
  for (size_t i = 0; i < k.params.size(); ++i) {
    Parameter &x = parameters[i];
    x.begin = reinterpret_cast<uint64_t>(l.buffers[i]);
    x.end = x.begin + static_cast<uint64_t>(l.bufferBytes[i]);
    x.elementBytes = sizeInBytes(k.params[i].type);
    x.written = k.params[i].written;
    if (x.written)
      x.shadow.reserve(static_cast<size_t>(l.bufferBytes[i] / x.elementBytes));
    x.shadow.forgetRange();
    x.sectorBlock.assign(counting ? (x.end - x.begin + 31) / 32 : 0, 0);
  }
  return FUSERT_OK;
}

void SimBlockRunner::startThreads(int64_t block) {
  sharedSerial = ++serial;
  phaseBlocks.push_back(block);
  epoch = 0;
  stopped = false;
  status = 0;
  int poison = 0xff; // a NaN, an unlikely index
  if (seed != 0) {
    random = SimRandom(seed, phaseNumber, static_cast<uint64_t>(block));
    poison = static_cast<int>(random.below(256));
  }
  std::memset(shared, poison, sharedBytes);
  for (Unit &u : units) {
    u.epoch = 0;
    if (counting)
      u.log.start(kernel->lanes);
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    Thread &t = threads[i];
    t.visible = {&hooks,
                 launch->buffers.data(),
                 launch->dims.data(),
                 shared,
                 block,
                 static_cast<int32_t>(i),
                 0,
                 0};
    t.runner = this;
    t.state = State::Ready;
    t.unit = static_cast<int32_t>(i) / kernel->lanes;
    t.lane = static_cast<int32_t>(i) % kernel->lanes;
    noteEpochs(t);
    t.stack = stacks.prepare(static_cast<int32_t>(i), threadMain, &t);
  }
}

bool SimBlockRunner::runBlock(int64_t block) {
  switch (startBlock(block)) {
  case Stop::Done: return true;
  case Stop::Failed: return false;
  case Stop::Counters:
  case Stop::GridBarrier: break;
  }
  return broken("block " + std::to_string(block) +
                " waits for the grid in an entry for one phase, where blocks run in any order");
}

SimBlockRunner::Stop SimBlockRunner::startBlock(int64_t block) {
  try {
    startThreads(block);
  } catch (const std::bad_alloc &) {
    failed = Failure::NoMemory;
    return Stop::Failed;
  }
  return runOn();
}

SimBlockRunner::Stop SimBlockRunner::goOn() {
  // What other blocks did before the barrier is in order with all that follows; shared memory is the block's own, and
  // its values are where the kernel relies on blocks that stay.
  const int64_t block = phaseBlocks.back();
  phaseSerial = ++serial;
  if (!kernel->resident)
    sharedSerial = serial;
  phaseBlocks.assign(1, block);
  ++phase;
  for (Parameter &p : parameters)
    p.shadow.forgetRange();
  ++epoch;
  for (Unit &u : units)
    u.epoch = 0;
  for (Thread &t : threads) {
    t.state = State::Ready;
    noteEpochs(t);
  }
  return runOn();
}

bool SimBlockRunner::countersReached() const {
  return grid->reached(awaited.first, awaited.last, awaited.count);
}

SimBlockRunner::Stop SimBlockRunner::goOnCounting() {
  threads[0].state = State::Ready;
  return runOn();
}

void SimBlockRunner::reportWait() {
  const SimGrid::Name name = grid->nameOf(threads[0].run);
  phase = name.phase;
  broken("deadlock: block " + std::to_string(name.block) + " waits for " +
         std::to_string(awaited.count) + " signals of each of the counters " +
         std::to_string(awaited.first) + " to " + std::to_string(awaited.last) +
         ", which do not come");
}

SimBlockRunner::Stop SimBlockRunner::runOn() {
  try {
    for (;;) {
      const bool good = seed == 0 ? runInOrder() : runShuffled();
      if (good && threads[0].state == State::CounterWait)
        return Stop::Counters;
      if (!good || !blockBarrier()) {
        if (failed == Failure::None)
          failed = Failure::KernelStatus;
        return Stop::Failed;
      }
      if (threads[0].state == State::GridSync)
        return Stop::GridBarrier;
      if (threads[0].state == State::Done)
        break;
    }
  } catch (const std::bad_alloc &) {
    failed = Failure::NoMemory;
    return Stop::Failed;
  }
  finishBlock();
  return Stop::Done;
}

void SimBlockRunner::finishBlock() {
  ++counts.blocks;
  counts.threads += threads.size();
  for (const Thread &t : threads)
    counts.flops += static_cast<uint64_t>(t.visible.flops);
}

void SimBlockRunner::reportDeadlock(int64_t block, int64_t other) {
  broken("deadlock: block " + std::to_string(block) + " waits for the grid at barrier " +
         std::to_string(stoppedAt()) + ", where block " + std::to_string(other) + " does not come");
}

/// Every thread waits at a barrier of the block or the grid or is done: all must do the same, at the same place.
bool SimBlockRunner::blockBarrier() {
  const Thread &first = threads[0];
  for (const Thread &t : threads)
    if (t.state != first.state || (t.state != State::Done && t.site != first.site))
      return broken(
          "block " + std::to_string(t.visible.block) + ": thread " +
          std::to_string(t.visible.thread) +
          (t.state == State::Done ? " has ended" : " waits at barrier " + std::to_string(t.site)) +
          " while thread 0 " +
          (first.state == State::Done ? "has ended"
                                      : "waits at barrier " + std::to_string(first.site)));
  if (first.state != State::BlockSync)
    return true;
  ++epoch;
  ++counts.barriers;
  for (Thread &t : threads) {
    t.state = State::Ready;
    noteEpochs(t);
  }
  return true;
}

bool SimBlockRunner::runInOrder() {
  for (int32_t u = 0; u < kernel->units; ++u) {
    Settled settled = Settled::GoesOn;
    while (settled == Settled::GoesOn) {
      for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
        Thread &t = threads[static_cast<size_t>(u * kernel->lanes + lane)];
        if (t.state != State::Ready)
          continue;
        resume(t);
        if (stopped)
          return false;
      }
      settled = settle(u);
    }
    if (settled == Settled::Broken)
      return false;
  }
  return true;
}

bool SimBlockRunner::runShuffled() {
  const auto addReady = [&](int32_t unit) {
    for (int32_t i = unit * kernel->lanes; i < (unit + 1) * kernel->lanes; ++i)
      if (threads[static_cast<size_t>(i)].state == State::Ready) {
        ready.push_back(i);
        ++units[static_cast<size_t>(unit)].running;
      }
  };
  ready.clear();
  for (int32_t u = 0; u < kernel->units; ++u) {
    units[static_cast<size_t>(u)].running = 0;
    addReady(u);
  }
  while (!ready.empty()) {
    int32_t &drawn = ready[random.below(ready.size())];
    Thread &t = threads[static_cast<size_t>(drawn)];
    resume(t);
    if (stopped)
      return false;
    if (t.state == State::Ready) // gave way to others
      continue;
    drawn = ready.back();
    ready.pop_back();
    if (--units[static_cast<size_t>(t.unit)].running > 0)
      continue;
    const Settled settled = settle(t.unit);
    if (settled == Settled::Broken)
      return false;
    if (settled == Settled::GoesOn)
      addReady(t.unit);
  }
  return true;
}

SimBlockRunner::Settled SimBlockRunner::settle(int32_t unit) {
  Thread *lanes = &threads[static_cast<size_t>(unit * kernel->lanes)];
  if (counting)
    units[static_cast<size_t>(unit)].log.flush(counts);
  bool full = false;
  State waiting = State::Done;
  for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
    full |= lanes[lane].state == State::LogFull;
    if (lanes[lane].state == State::UnitSync || lanes[lane].state == State::Shuffle)
      waiting = lanes[lane].state;
  }
  if (lanes[0].state == State::CounterWait)
    waiting = State::Done; // the others stay where they are until it comes
  if (full) {
    for (int32_t lane = 0; lane < kernel->lanes; ++lane)
      if (lanes[lane].state == State::LogFull)
        lanes[lane].state = State::Ready;
    return Settled::GoesOn;
  }
  if (waiting == State::Done)
    return Settled::Waits; // done, or at a block barrier
  return rendezvous(unit, waiting) ? Settled::GoesOn : Settled::Broken;
}

bool SimBlockRunner::rendezvous(int32_t unit, State state) {
  Thread *lanes = &threads[static_cast<size_t>(unit * kernel->lanes)];
  for (int32_t lane = 0; lane < kernel->lanes; ++lane)
    if (lanes[lane].state != state || lanes[lane].site != lanes[0].site ||
        lanes[lane].laneMask != lanes[0].laneMask)
      return broken("block " + std::to_string(lanes[0].visible.block) + ": lane " +
                    std::to_string(lane) + " of unit " + std::to_string(unit) +
                    " is not at the same " +
                    (state == State::Shuffle ? "shuffle" : "unit barrier") + " as lane 0 (site " +
                    std::to_string(lanes[0].site) + ")");
  if (state == State::Shuffle) {
    ++counts.shuffles;
    // Exchanges pairs; where the mask is 0 a lane gets its own bits.
    for (int32_t lane = 0; lane < kernel->lanes; ++lane)
      if (const int32_t other = lane ^ lanes[lane].laneMask; lane < other)
        std::swap(lanes[lane].bits, lanes[other].bits);
  } else {
    ++counts.unitSyncs;
    ++units[static_cast<size_t>(unit)].epoch;
  }
  for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
    lanes[lane].state = State::Ready;
    lanes[lane].laneMask = 0;
    noteEpochs(lanes[lane]);
  }
  return true;
}

void SimBlockRunner::threadMain(void *argument) {
  Thread &t = *static_cast<Thread *>(argument);
  t.runner->entry(&t.visible);
  t.state = State::Done;
  fusertSwitchFiber(&t.stack, t.runner->scheduler);
  __builtin_unreachable();
}

void SimBlockRunner::park(Thread &t, State state, int32_t site) {
  t.state = state;
  t.site = site;
  fusertSwitchFiber(&t.stack, scheduler);
}

void SimBlockRunner::giveUp(Thread &t) {
  stopped = true;
  fusertSwitchFiber(&t.stack, scheduler);
  __builtin_unreachable();
}

void SimBlockRunner::noteEpochs(Thread &t) const {
  t.who = {serial,           epoch,  units[static_cast<size_t>(t.unit)].epoch,
           t.visible.thread, t.unit, false};
}

} // namespace fusec::rt

#include "Runtime/SimBlock.h"

#include "Runtime/Error.h"

#include <cstring>

namespace fusec::rt {

const fusec_sim_hooks SimBlockRunner::hooks = {
    sizeof(fusec_sim_hooks), 0, onAccess, onBlockSync, onUnitSync, onShuffle, onFail};

fusert_status SimBlockRunner::startPhase(const bundle::Kernel &k, int32_t p, const Launch &l,
                                         void *function, SimCounts &c) {
  kernel = &k;
  phase = p;
  launch = &l;
  entry = reinterpret_cast<fusec_sim_kernel>(function);
  counts = &c;
  const int32_t count = k.units * k.lanes;
  FUSERT_TRY(stacks.reserve(count));
  threads.resize(static_cast<size_t>(count));
  units.resize(static_cast<size_t>(k.units));
  sharedMemory.resize(static_cast<size_t>(k.scratchBytes) + 128);
  shared = reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(sharedMemory.data()) + 127) /
                                       128 * 128);
  sharedShadow.reserve(static_cast<size_t>(k.scratchBytes));
  phaseSerial = serial + 1;
  parameters.resize(k.params.size());
  for (size_t i = 0; i < k.params.size(); ++i) {
    Parameter &x = parameters[i];
    x.begin = reinterpret_cast<uint64_t>(l.buffers[i]);
    x.end = x.begin + static_cast<uint64_t>(l.bufferBytes[i]);
    x.elementBytes = sizeInBytes(k.params[i].type);
    x.written = k.params[i].written;
    if (x.written)
      x.shadow.reserve(static_cast<size_t>(l.bufferBytes[i] / x.elementBytes));
    x.sectorBlock.assign(counting && x.end > x.begin ? (x.end - 1) / 32 - x.begin / 32 + 1 : 0, 0);
  }
  return FUSERT_OK;
}

fusert_status SimBlockRunner::runBlock(int64_t block) {
  ++serial;
  epoch = 0;
  stopped = false;
  status = 0;
  std::memset(shared, 0xff, static_cast<size_t>(kernel->scratchBytes)); // a NaN, an unlikely index
  for (Unit &u : units) {
    u.epoch = 0;
    if (counting)
      u.log.start(kernel->lanes);
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    Thread &t = threads[i];
    t.visible = {
        &hooks, launch->buffers.data(), launch->dims.data(), shared, block, static_cast<int32_t>(i),
        0};
    t.runner = this;
    t.state = State::Ready;
    t.unit = static_cast<int32_t>(i) / kernel->lanes;
    t.lane = static_cast<int32_t>(i) % kernel->lanes;
    noteEpochs(t);
    t.stack = stacks.prepare(static_cast<int32_t>(i), threadMain, &t);
  }
  for (;;) {
    for (int32_t u = 0; u < kernel->units; ++u)
      if (!runUnit(u))
        return status != 0 ? FUSERT_OUT_OF_RANGE : fail(FUSERT_CHECK_FAILED, message);
    // Every thread waits at a block barrier or is done: all must do the same, at the same place.
    for (const Thread &t : threads)
      if (t.state != threads[0].state ||
          (t.state == State::BlockSync && t.site != threads[0].site)) {
        report("block " + std::to_string(block) + ": thread " + std::to_string(t.visible.thread) +
               (t.state == State::Done ? " has ended"
                                       : " waits at barrier " + std::to_string(t.site)) +
               " while thread 0 " +
               (threads[0].state == State::Done
                    ? "has ended"
                    : "waits at barrier " + std::to_string(threads[0].site)));
        return fail(FUSERT_CHECK_FAILED, message);
      }
    if (threads[0].state == State::Done)
      break;
    ++epoch;
    ++counts->barriers;
    for (Thread &t : threads) {
      t.state = State::Ready;
      noteEpochs(t);
    }
  }
  ++counts->blocks;
  counts->threads += threads.size();
  return FUSERT_OK;
}

bool SimBlockRunner::runUnit(int32_t unit) {
  Thread *first = &threads[static_cast<size_t>(unit * kernel->lanes)];
  for (;;) {
    for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
      if (first[lane].state != State::Ready)
        continue;
      fusertSwitchFiber(&scheduler, first[lane].stack);
      if (stopped)
        return false;
    }
    if (counting)
      units[unit].log.flush(*counts);
    bool full = false;
    State waiting = State::Done;
    for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
      full |= first[lane].state == State::LogFull;
      if (first[lane].state == State::UnitSync || first[lane].state == State::Shuffle)
        waiting = first[lane].state;
    }
    if (full) {
      for (int32_t lane = 0; lane < kernel->lanes; ++lane)
        if (first[lane].state == State::LogFull)
          first[lane].state = State::Ready;
      continue;
    }
    if (waiting == State::Done)
      return true; // done, or at a block barrier
    if (!rendezvous(unit, waiting))
      return false;
  }
}

bool SimBlockRunner::rendezvous(int32_t unit, State state) {
  Thread *lanes = &threads[static_cast<size_t>(unit * kernel->lanes)];
  for (int32_t lane = 0; lane < kernel->lanes; ++lane)
    if (lanes[lane].state != state || lanes[lane].site != lanes[0].site ||
        lanes[lane].laneMask != lanes[0].laneMask)
      return report("block " + std::to_string(lanes[0].visible.block) + ": lane " +
                    std::to_string(lane) + " of unit " + std::to_string(unit) +
                    " is not at the same " +
                    (state == State::Shuffle ? "shuffle" : "unit barrier") + " as lane 0 (site " +
                    std::to_string(lanes[0].site) + ")");
  if (state == State::Shuffle) {
    ++counts->shuffles;
    std::vector<uint64_t> given;
    for (int32_t lane = 0; lane < kernel->lanes; ++lane)
      given.push_back(lanes[lane].bits);
    for (int32_t lane = 0; lane < kernel->lanes; ++lane)
      lanes[lane].bits = given[static_cast<size_t>(lane ^ lanes[lane].laneMask)];
  } else {
    ++counts->unitSyncs;
    ++units[unit].epoch;
  }
  for (int32_t lane = 0; lane < kernel->lanes; ++lane) {
    lanes[lane].state = State::Ready;
    lanes[lane].laneMask = 0;
    noteEpochs(lanes[lane]);
  }
  return true;
}

bool SimBlockRunner::report(const std::string &what) {
  message = "kernel '" + kernel->symbol + "'";
  if (!kernel->onnxNodes.empty())
    message += " (node '" + kernel->onnxNodes.front() + "')";
  message += ", phase " + std::to_string(phase) + ": " + what;
  return false;
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

void SimBlockRunner::violation(Thread &t, const std::string &what, int32_t site) {
  report("block " + std::to_string(t.visible.block) + ", thread " +
         std::to_string(t.visible.thread) + ", site " + std::to_string(site) + ": " + what);
  stopped = true;
  fusertSwitchFiber(&t.stack, scheduler);
  __builtin_unreachable();
}

void SimBlockRunner::noteEpochs(Thread &t) const {
  t.who = {serial, epoch, units[t.unit].epoch, t.visible.thread, t.unit, false};
}

namespace {

std::string verb(int32_t flags) { return flags & FUSEC_SIM_WRITE ? "write" : "read"; }

} // namespace

void SimBlockRunner::checkGlobal(Thread &t, uint64_t address, int32_t bytes, int32_t flags,
                                 int32_t param, int32_t site) {
  if (param >= static_cast<int32_t>(parameters.size()))
    violation(t, "access to parameter " + std::to_string(param) + ", which does not exist", site);
  Parameter &p = parameters[static_cast<size_t>(param)];
  const auto name = [&] { return "parameter " + std::to_string(param); };
  if (address < p.begin || address > p.end || p.end - address < static_cast<uint64_t>(bytes))
    violation(t,
              verb(flags) + " of " + std::to_string(bytes) + " bytes at offset " +
                  std::to_string(static_cast<int64_t>(address - p.begin)) + " of " + name() +
                  ", which has " + std::to_string(p.end - p.begin) + " bytes",
              site);
  if ((flags & FUSEC_SIM_WRITE) && !p.written)
    violation(t, "write to " + name() + ", which is read-only", site);
  if (p.written) {
    SimAccess &a = t.who;
    a.write = (flags & FUSEC_SIM_WRITE) != 0;
    const size_t first = (address - p.begin) / static_cast<uint64_t>(p.elementBytes);
    const size_t last = (address - p.begin + static_cast<uint64_t>(bytes) - 1) /
                        static_cast<uint64_t>(p.elementBytes);
    for (size_t g = first; g <= last; ++g)
      if (p.shadow.access(g, a, phaseSerial, false) == SimShadow::Found::Race)
        violation(t,
                  "race on element " + std::to_string(g) + " of " + name() + " between this " +
                      verb(flags) + " and thread " + std::to_string(p.shadow.otherThread()) +
                      " of the same or another block, with no barrier between them",
                  site);
  }
  if (counting)
    for (uint64_t s = address / 32 - p.begin / 32;
         s <= (address + static_cast<uint64_t>(bytes) - 1) / 32 - p.begin / 32; ++s)
      if (p.sectorBlock[s] != serial) {
        p.sectorBlock[s] = serial;
        ++counts->tileSectors;
      }
}

void SimBlockRunner::checkShared(Thread &t, uint64_t address, int32_t bytes, int32_t flags,
                                 int32_t site) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(shared);
  const auto size = static_cast<uint64_t>(kernel->scratchBytes);
  if (offset > size || size - offset < static_cast<uint64_t>(bytes))
    violation(t,
              verb(flags) + " of " + std::to_string(bytes) + " bytes at offset " +
                  std::to_string(static_cast<int64_t>(offset)) + " of shared memory, which has " +
                  std::to_string(size) + " bytes",
              site);
  // A granule is a byte. A read looks at one byte of each 4-byte word, a write marks all.
  const bool write = (flags & FUSEC_SIM_WRITE) != 0;
  const uint64_t step = write ? 1 : bytes % 4 == 0 ? 4 : 1;
  SimAccess &a = t.who;
  a.write = write;
  for (uint64_t b = 0; b < static_cast<uint64_t>(bytes); b += step) {
    if ((flags & FUSEC_SIM_READ) && write) { // an update reads first
      SimAccess read = a;
      read.write = false;
      if (sharedShadow.access(offset + b, read, serial, true) == SimShadow::Found::Uninitialised)
        violation(t,
                  "update of shared memory that this block has not written yet, offset " +
                      std::to_string(offset + b),
                  site);
    }
    switch (sharedShadow.access(offset + b, a, serial, true)) {
    case SimShadow::Found::Nothing: break;
    case SimShadow::Found::Uninitialised:
      violation(t,
                "read of shared memory that this block has not written yet, offset " +
                    std::to_string(offset + b),
                site);
    case SimShadow::Found::Race:
      violation(t,
                "race on shared memory, offset " + std::to_string(offset + b) + ", between this " +
                    verb(flags) + " and thread " + std::to_string(sharedShadow.otherThread()) +
                    ", with no barrier between them",
                site);
    }
  }
}

void SimBlockRunner::onAccess(fusec_sim_thread *visible, const void *address, int32_t bytes,
                              int32_t flags, int32_t param, int32_t site) {
  Thread &t = *reinterpret_cast<Thread *>(visible);
  SimBlockRunner &r = *t.runner;
  const auto at = reinterpret_cast<uint64_t>(address);
  if (bytes <= 0 || bytes > 64 || (flags & (FUSEC_SIM_READ | FUSEC_SIM_WRITE)) == 0)
    r.violation(t, "malformed access", site);
  if ((bytes & (bytes - 1)) == 0 && at % static_cast<uint64_t>(bytes) != 0)
    r.violation(t, verb(flags) + " of " + std::to_string(bytes) + " bytes is not aligned", site);
  if (param >= 0)
    r.checkGlobal(t, at, bytes, flags, param, site);
  else
    r.checkShared(t, at, bytes, flags, site);
  if (!r.counting)
    return;
  SimLog &log = r.units[t.unit].log;
  if (log.full(t.lane))
    r.park(t, State::LogFull, site);
  const uint64_t where = param >= 0 ? at : at - reinterpret_cast<uint64_t>(r.shared);
  log.add(t.lane,
          {where, site, static_cast<uint16_t>(bytes), static_cast<uint8_t>(flags), param < 0});
}

void SimBlockRunner::onBlockSync(fusec_sim_thread *t, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->park(thread, State::BlockSync, site);
}

void SimBlockRunner::onUnitSync(fusec_sim_thread *t, int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->park(thread, State::UnitSync, site);
}

uint64_t SimBlockRunner::onShuffle(fusec_sim_thread *t, uint64_t bits, int32_t laneMask,
                                   int32_t site) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  if (laneMask < 0 || laneMask >= thread.runner->kernel->lanes)
    thread.runner->violation(thread, "shuffle with lane mask " + std::to_string(laneMask), site);
  thread.bits = bits;
  thread.laneMask = laneMask;
  thread.runner->park(thread, State::Shuffle, site);
  return thread.bits;
}

void SimBlockRunner::onFail(fusec_sim_thread *t, int32_t status, int32_t) {
  Thread &thread = *reinterpret_cast<Thread *>(t);
  thread.runner->status = status;
  thread.runner->stopped = true;
  fusertSwitchFiber(&thread.stack, thread.runner->scheduler);
}

} // namespace fusec::rt

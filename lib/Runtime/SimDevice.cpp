#include "Runtime/CodeImage.h"
#include "Runtime/Error.h"
#include "Runtime/Profile.h"
#include "Runtime/SimBlock.h"
#include "Runtime/Workers.h"

#include <atomic>
#include <cstring>
#include <numeric>

namespace fusec::rt {

namespace {

class SimDevice final : public Device {
public:
  fusert_status load(const bundle::Program &p, const bundle::Model &model) override;
  bool hostMemory() const override { return true; }
  void *weight(int32_t index) const override {
    return const_cast<uint8_t *>((*weights)[index].bytes);
  }
  fusert_status allocate(size_t, void **) override {
    return fail(FUSERT_INTERNAL, "sim uses host memory");
  }
  void release(void *) override {}
  fusert_status findMemory(const void *, const std::string &, bool &ofDevice) const override {
    ofDevice = true;
    return FUSERT_OK;
  }
  void poison(void *memory, size_t bytes) const override {
    if (bytes > 0)
      std::memset(memory, 0xff, bytes); // NaN, -1
  }
  fusert_status createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) override;

  const bundle::Program *program = nullptr;
  std::vector<std::vector<void *>> entries; // [kernel][phase]
  std::vector<void *> gridEntries;          // [kernel]: for all phases, or null

private:
  const std::vector<bundle::Weight> *weights = nullptr;
  CodeImage code;
};

class SimQueue final : public Queue {
public:
  SimQueue(const SimDevice &device, const QueueOptions &options)
      : device(device), seed(options.simSeed), counting(options.counters),
        counts(device.program->kernels.size()) {
    workers.start(options, kMaxThreads);
    for (int32_t i = 0; i < workers.width(); ++i)
      runners.push_back(std::make_unique<SimBlockRunner>(options.counters, seed));
  }
  fusert_status begin() override { return FUSERT_OK; }
  fusert_status launch(Launch &l) override;
  fusert_status copy(void *to, const void *from, size_t bytes, Direction) override {
    std::memcpy(to, from, bytes);
    return FUSERT_OK;
  }
  fusert_status finish() override { return FUSERT_OK; }
  fusert_status end() override { return FUSERT_OK; }
  std::string countersJson() override { return simCountersJson(*device.program, counts); }

private:
  fusert_status runPhase(const Launch &l, int32_t phase);
  fusert_status runGrid(Launch &l);
  fusert_status toBarrier(const Launch &l, bool first, std::vector<SimBlockRunner::Stop> &stops,
                          SimRandom &random);
  fusert_status failed(const Launch &l, const SimBlockRunner &runner) const;

  static constexpr int32_t kMaxThreads = 16; // each one has the stacks and shadows of a whole block
  const SimDevice &device;
  const uint64_t seed;
  const bool counting;
  Workers workers;
  std::vector<std::unique_ptr<SimBlockRunner>> runners;  // one a worker
  std::vector<std::unique_ptr<SimBlockRunner>> resident; // one a block that waits for the grid
  SimGrid grid;                                          // of these
  std::vector<int64_t> order;                            // of blocks
  std::vector<SimCounts> counts;                         // of each kernel
  uint64_t phases = 0;                                   // run so far
};

fusert_status SimQueue::launch(Launch &l) {
  ++counts[static_cast<size_t>(l.kernel)].launches;
  for (int64_t blocks : l.grids)
    if (blocks > INT32_MAX)
      return fail(FUSERT_INVALID_ARGUMENT, "under these shapes kernel '" +
                                               device.program->kernels[l.kernel].symbol +
                                               "' has too many blocks");
  // With a seed the phases run apart, as on a device that cannot hold the blocks: their order is drawn anew. Where
  // phases wait for counters or find all blocks resident, that is one way among others.
  const bundle::Kernel &kernel = device.program->kernels[l.kernel];
  if (device.gridEntries[l.kernel] &&
      (seed == 0 || ((kernel.waits || kernel.resident) && SimRandom(seed, phases).below(4) > 0)))
    return runGrid(l);
  return forEachPhase(l, [&](int32_t phase) { return runPhase(l, phase); });
}

/// The entry for all phases, by as many blocks as this device is taken to hold at once: few, so that each has several
/// of a phase's blocks to do, or all of them for a kernel that makes use of that. They run in turn from one barrier of
/// the grid to the next.
fusert_status SimQueue::runGrid(Launch &l) {
  constexpr int64_t kResident = 3;
  constexpr int64_t kMostThreads = 16384; // each has a stack with a guard page of its own
  SimRandom random(seed, phases);
  const bundle::Kernel &kernel = device.program->kernels[l.kernel];
  const int64_t widest = *std::max_element(l.grids.begin(), l.grids.end());
  int64_t room = seed == 0 ? kResident : 1 + int64_t(random.below(2 * kResident));
  if (kernel.resident && widest <= kMostThreads / (kernel.units * kernel.lanes) &&
      (seed == 0 || random.below(2) == 0))
    room = widest;
  const auto blocks = static_cast<size_t>(std::max<int64_t>(1, std::min(widest, room)));
  while (resident.size() < blocks)
    resident.push_back(std::make_unique<SimBlockRunner>(counting, seed));
  l.dims.resize(kernel.dims.size() + kernel.hasRounds()); // a launch that ran out of memory
  l.dims.push_back(static_cast<int64_t>(blocks));
  if (kernel.waits)
    grid.start(kernel, l);
  fusert_status status = FUSERT_OK;
  std::vector<SimBlockRunner::Stop> stops(blocks, SimBlockRunner::Stop::GridBarrier);
  for (size_t i = 0; status == FUSERT_OK && i < blocks; ++i)
    status =
        resident[i]->startPhase(kernel, 0, l, {device.gridEntries[l.kernel], kernel.scratchBytes},
                                phases, kernel.waits ? &grid : nullptr);
  for (bool first = true; status == FUSERT_OK && stops[0] == SimBlockRunner::Stop::GridBarrier;
       first = false, ++phases) {
    if (!first)
      grid.barrier();
    status = toBarrier(l, first, stops, random);
    for (size_t i = 0; i < blocks && status == FUSERT_OK; ++i)
      for (size_t j = 0; j < blocks && status == FUSERT_OK; ++j) {
        const bool waits = stops[i] == SimBlockRunner::Stop::GridBarrier;
        if (waits && (stops[j] != stops[i] || resident[i]->stoppedAt() != resident[j]->stoppedAt()))
          resident[i]->reportDeadlock(static_cast<int64_t>(i), static_cast<int64_t>(j));
        else if (j <= i || kernel.waits || resident[i]->independentOf(*resident[j]))
          continue;
        status = failed(l, *resident[i]);
      }
  }
  if (const std::string wrong = status == FUSERT_OK && kernel.waits ? grid.miscount() : "";
      !wrong.empty()) {
    resident[0]->report(wrong);
    status = failed(l, *resident[0]);
  }
  l.dims.pop_back();
  for (size_t i = 0; status == FUSERT_OK && i < blocks; ++i)
    counts[static_cast<size_t>(l.kernel)].add(resident[i]->phaseCounts());
  return status;
}

/// Runs the resident blocks until each has come to a barrier of the grid or its end; `first`: from their start. Those
/// that wait for counters have others run before them.
fusert_status SimQueue::toBarrier(const Launch &l, bool first,
                                  std::vector<SimBlockRunner::Stop> &stops, SimRandom &random) {
  using Stop = SimBlockRunner::Stop;
  order.resize(stops.size());
  std::iota(order.begin(), order.end(), 0);
  if (seed != 0)
    random.shuffle(order);
  std::vector<bool> begun(stops.size());
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (int64_t i : order) {
      const auto block = static_cast<size_t>(i);
      SimBlockRunner &runner = *resident[block];
      Stop &stop = stops[block];
      if (begun[block] && (stop != Stop::Counters || !runner.countersReached()))
        continue;
      stop = begun[block] ? runner.goOnCounting() : first ? runner.startBlock(i) : runner.goOn();
      begun[block] = goesOn = true;
      if (stop == Stop::Failed)
        return failed(l, runner);
    }
  }
  for (size_t i = 0; i < stops.size(); ++i)
    if (stops[i] == Stop::Counters) {
      resident[i]->reportWait();
      return failed(l, *resident[i]);
    }
  return FUSERT_OK;
}

/// Each worker takes a fixed share of the blocks, so that what is counted and found does not depend on the time.
fusert_status SimQueue::runPhase(const Launch &l, int32_t phase) {
  const int64_t blocks = l.grids[phase];
  const auto tasks = static_cast<int32_t>(std::min<int64_t>(workers.width(), blocks));
  const bundle::Kernel &kernel = device.program->kernels[l.kernel];
  const int64_t shared =
      kernel.dynamicShared.empty() ? kernel.scratchBytes : kernel.dynamicShared[phase];
  for (int32_t i = 0; i < tasks; ++i)
    FUSERT_TRY(runners[i]->startPhase(kernel, phase, l, {device.entries[l.kernel][phase], shared},
                                      phases));
  if (seed != 0) {
    order.resize(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    SimRandom(seed, phases).shuffle(order);
  }
  ++phases;
  // The first worker that fails decides; those after it stop, those before go on, so that it is always the same one.
  std::atomic<int32_t> firstFailed{tasks};
  auto share = [&](int32_t worker) {
    for (int64_t i = blocks * worker / tasks; i < blocks * (worker + 1) / tasks; ++i) {
      if (firstFailed.load(std::memory_order_relaxed) < worker)
        return;
      if (runners[worker]->runBlock(seed != 0 ? order[static_cast<size_t>(i)] : i))
        continue;
      int32_t seen = firstFailed.load();
      while (worker < seen && !firstFailed.compare_exchange_weak(seen, worker)) {
      }
      return;
    }
  };
  if (tasks == 1)
    share(0);
  else
    workers.parallel(tasks, share);
  if (firstFailed.load() < tasks)
    return failed(l, *runners[firstFailed.load()]);
  for (int32_t i = 0; i < tasks; ++i)
    for (int32_t j = i + 1; j < tasks; ++j)
      if (!runners[i]->independentOf(*runners[j]))
        return failed(l, *runners[i]);
  for (int32_t i = 0; i < tasks; ++i)
    counts[static_cast<size_t>(l.kernel)].add(runners[i]->phaseCounts());
  return FUSERT_OK;
}

fusert_status SimQueue::failed(const Launch &l, const SimBlockRunner &runner) const {
  switch (runner.failure()) {
  case SimBlockRunner::Failure::KernelStatus:
    return kernelFailed(*device.program, l, runner.kernelStatus());
  case SimBlockRunner::Failure::BrokenRule: return fail(FUSERT_CHECK_FAILED, runner.message());
  default: return fail(FUSERT_NO_MEMORY, "out of memory");
  }
}

/// What the device that is simulated would refuse.
fusert_status checkLimits(const bundle::Program &p, const bundle::Kernel &k) {
  const auto refuse = [&](int64_t given, const char *what, int64_t most) {
    std::string text = "kernel '" + k.symbol + "'";
    if (!k.onnxNodes.empty())
      text += " (node '" + k.onnxNodes.front() + "')";
    return fail(FUSERT_CHECK_FAILED, text + ": a block has " + std::to_string(given) + " " + what +
                                         ", '" + p.target + "' allows " + std::to_string(most));
  };
  if (k.units * k.lanes > p.maxBlockThreads)
    return refuse(k.units * k.lanes, "threads", p.maxBlockThreads);
  const int64_t most = k.dynamicShared.empty() ? p.maxSharedBytes : p.maxDynamicShared;
  if (k.scratchBytes > most)
    return refuse(k.scratchBytes, "bytes of shared memory", most);
  return FUSERT_OK;
}

fusert_status SimDevice::load(const bundle::Program &p, const bundle::Model &model) {
  program = &p;
  weights = &model.weights;
  if (!p.images.empty())
    FUSERT_TRY(code.load(p.images.front().code));
  for (const bundle::Kernel &k : p.kernels) {
    FUSERT_TRY(checkLimits(p, k));
    entries.emplace_back();
    for (size_t phase = 0; phase < k.grids.size(); ++phase) {
      const std::string name = k.symbol + "_p" + std::to_string(phase);
      entries.back().push_back(code.function(name));
      if (!entries.back().back())
        return fail(FUSERT_BAD_BUNDLE, "the code has no function '" + name + "'");
    }
    gridEntries.push_back(k.gridBarrier ? code.function(k.symbol + "_grid") : nullptr);
    if (k.gridBarrier && !gridEntries.back())
      return fail(FUSERT_BAD_BUNDLE, "the code has no function '" + k.symbol + "_grid'");
  }
  return FUSERT_OK;
}

fusert_status SimDevice::createQueue(const QueueOptions &options, std::unique_ptr<Queue> &queue) {
  queue = std::make_unique<SimQueue>(*this, options);
  return FUSERT_OK;
}

} // namespace

std::unique_ptr<Device> makeSimDevice(int32_t) { return std::make_unique<SimDevice>(); }

} // namespace fusec::rt

#include "Cost/Cost.h"

#include "Cost/Occupancy.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace fusec::cost {

namespace {

/// The fraction of its issue rate that a core reaches with that many resident units.
double issueShare(double units, const Target &target) {
  return std::min(1.0, units / target.unitsToFill);
}

/// Vector operations that a core (SM, CU) issues; a GPU's flopsPerSec counts all schedulers.
double vectorsPerSecond(const Target &target) {
  bool cpu = target.kind == TargetKind::Cpu;
  double flopsPerCore = cpu ? target.flopsPerSec : target.flopsPerSec / target.cores;
  return flopsPerCore / (2.0 * target.lanes);
}

/// Seconds that one core needs to issue one block's instructions, staging aside.
double blockSeconds(const Counts &c, const Target &target) {
  const double vectorsPerSec = vectorsPerSecond(target);
  double arithmetic = (c.vectorOps + c.stalls) / vectorsPerSec;
  // Loads issue beside arithmetic; lanes that lie apart are served one by one, each by a load of its own.
  double loads = (c.vectorLoads + c.gathers) / (vectorsPerSec * target.loadShare);
  return std::max(arithmetic, loads) * c.unitsPerBlock;
}

/// Bytes per second of a level for `parallel` cores. A core reaches its own share of a level that all share.
double bandwidth(const MemoryLevel &level, double parallel, const Target &target) {
  return level.bytesPerSec * (level.ofDevice ? parallel / target.cores : parallel);
}

/// Bandwidth for the kernel's address streams: several of them saturate memory, but conflict in the sets of a cache.
double streamBandwidth(const Counts &c, size_t level, double parallel, const Target &target) {
  const CpuCore &core = target.core;
  const bool isMemory = level + 1 == target.memory.size(),
             several = c.rowsAtOnce >= core.rowsToFill;
  const double share = isMemory == several ? 1
                       : isMemory          ? core.oneRowShare
                                           : core.severalRowsShare;
  return bandwidth(target.memory[level], parallel, target) * share;
}

/// The fraction of the compulsory bytes that each level serves.
std::array<double, kLevels> servedShares(const Counts &c, const Target &target, double parallel) {
  const double all = c.readBytes + c.writtenBytes;
  std::array<double, kLevels> shares{};
  double held = 0;
  // A GPU's first level is what kernels manage themselves: nothing is left in it.
  for (size_t level = target.kind == TargetKind::Cpu ? 0 : 1; level < target.memory.size();
       ++level) {
    const MemoryLevel &cache = target.memory[level];
    const double capacity = double(cache.capacityBytes) * (cache.ofDevice ? 1 : parallel);
    const bool isMemory = level + 1 == target.memory.size();
    const double now = isMemory ? 1 : std::max(held, cacheShare(all, capacity));
    shares[level] = now - held;
    held = now;
  }
  return shares;
}

/// Seconds to move `bytes` of the compulsory bytes, each level serving its fraction of them.
double servedSeconds(const Counts &c, const Target &target, double parallel, double bytes) {
  const std::array<double, kLevels> shares = servedShares(c, target, parallel);
  double seconds = 0;
  for (size_t level = 0; level < target.memory.size(); ++level)
    if (shares[level] > 0)
      seconds += shares[level] * bytes / streamBandwidth(c, level, parallel, target);
  return seconds;
}

double compulsorySeconds(const Counts &c, const Target &target, double parallel) {
  assert(target.memory.size() >= 2 && target.memory.size() <= kLevels);
  constexpr double kManyKernels = 16; // of a network, whose constants compete for the last cache
  const bool cold = c.constantBytes * kManyKernels > double(target.memory.end()[-2].capacityBytes);
  const double constants = cold ? c.constantBytes : 0;
  return constants / streamBandwidth(c, target.memory.size() - 1, parallel, target) +
         servedSeconds(c, target, parallel, c.readBytes + c.writtenBytes - constants);
}

double blocksOfCore(const Counts &c, double cores) {
  return std::ceil(std::max(1.0, c.blocks) / cores);
}

/// Seconds in which nothing is there for a block to go on with: each tile that its threads copy, and reads one behind
/// another. Of these the first come with the launch, and what the last cache holds is there in half the time.
double waitSeconds(const Counts &c, const Target &target) {
  const double held = cacheShare(c.readBytes + c.writtenBytes,
                                 double(target.memory[target.memory.size() - 2].capacityBytes)),
               turns = std::max(0.0, c.reads / target.readsAtOnce - 1);
  return (c.fills + turns * (1 - held / 2)) * target.waitSec;
}

/// Seconds in which a core issues the instructions of all its blocks, as many of them at once as are resident.
double issueSeconds(const Counts &c, const Target &target, double cores) {
  const double each = blocksOfCore(c, cores), averages = std::max(each, c.longestBlock);
  if (target.kind == TargetKind::Cpu)
    return averages * blockSeconds(c, target);
  const double together = std::clamp(double(residentBlocks(c, target) / target.cores), 1.0, each);
  const double wavesOfCore = std::ceil(each / together), own = blockSeconds(c, target);
  // A block's waits hide behind the instructions of those beside it, but not behind its own.
  return std::max(averages * own / issueShare(together * c.unitsPerBlock, target),
                  wavesOfCore * (own + waitSeconds(c, target))) +
         wavesOfCore * c.barriers * target.blockBarrierSec;
}

double stagingSeconds(const Counts &c, const Target &target, double cores) {
  return blocksOfCore(c, cores) * c.stagedLoads / (vectorsPerSecond(target) * target.loadShare);
}

double seconds(const Counts &c, const Target &target, double cores, double launchSec, bool quick) {
  const double parallel = std::clamp(c.blocks, 1.0, cores);
  const double memory = compulsorySeconds(c, target, parallel);
  double slowest = memory;
  if (quick) {
    slowest = std::max(slowest, blockSeconds(c, target) * std::max(1.0, c.blocks) / parallel);
  } else {
    const double staged = servedSeconds(c, target, parallel, c.stagedBytes);
    slowest = std::max(staged, stagingSeconds(c, target, cores)) +
              std::max(memory - staged, issueSeconds(c, target, cores));
    for (size_t level = 0; level < target.memory.size(); ++level)
      slowest = std::max(slowest,
                         c.levelBytes[level] / bandwidth(target.memory[level], parallel, target));
    // Blocks that do little: each wave of them waits for memory; the first one's wait is part of the launch.
    if (memory > 0 && target.kind != TargetKind::Cpu)
      slowest = std::max(slowest, (waves(c, residentBlocks(c, target)) - 1) * target.waitSec);
  }
  return c.launches * launchSec + slowest;
}

double best(const Counts &c, const Target &target, bool quick) {
  const double together = seconds(c, target, target.cores, target.launchSec, quick);
  if (target.kind != TargetKind::Cpu)
    return together;
  return std::min(together, seconds(c, target, 1, target.ownLaunchSec, quick));
}

} // namespace

int64_t residentBlocks(const Counts &c, const Target &target) {
  const auto threads =
      std::min(int64_t(c.unitsPerBlock) * target.lanes, int64_t(target.maxThreadsPerCore));
  return residentBlocks(target, int64_t(c.registersPerThread), int64_t(c.sharedBytesPerBlock),
                        threads);
}

double cacheShare(double bytes, double capacityBytes) {
  return bytes <= capacityBytes ? 1 : std::max(0.0, 2 - bytes / capacityBytes);
}

std::array<double, kLevels> rereadShares(const Counts &c, const Target &target) {
  return servedShares(c, target, std::clamp(c.blocks, 1.0, double(target.cores)));
}

Counts sideBySide(std::span<const Counts> parts) {
  constexpr double Counts::*kOfBlock[] = {
      &Counts::vectorOps, &Counts::vectorLoads, &Counts::stalls, &Counts::stagedLoads,
      &Counts::gathers,   &Counts::barriers,    &Counts::fills,  &Counts::reads};
  constexpr double Counts::*kOfLaunch[] = {&Counts::blocks, &Counts::readBytes,
                                           &Counts::writtenBytes, &Counts::constantBytes,
                                           &Counts::stagedBytes};
  constexpr double Counts::*kMost[] = {&Counts::unitsPerBlock, &Counts::registersPerThread,
                                       &Counts::sharedBytesPerBlock, &Counts::longestBlock};
  Counts sum;
  sum.blocks = 0;
  double rows = 0;
  for (const Counts &part : parts) {
    for (double Counts::*count : kOfLaunch)
      sum.*count += part.*count;
    for (double Counts::*count : kOfBlock)
      sum.*count += part.blocks * part.*count;
    for (double Counts::*count : kMost)
      sum.*count = std::max(sum.*count, part.*count);
    rows += part.blocks * part.vectorLoads * part.rowsAtOnce;
    for (size_t level = 0; level < kLevels; ++level)
      sum.levelBytes[level] += part.levelBytes[level];
  }
  if (sum.vectorLoads > 0)
    sum.rowsAtOnce = rows / sum.vectorLoads;
  for (double Counts::*count : kOfBlock)
    sum.*count /= sum.blocks;
  return sum;
}

void takeTurns(Counts &whole, std::span<const Counts> parts, const Target &target) {
  const auto parallel = [&](const Counts &c) {
    return std::clamp(c.blocks, 1.0, double(target.cores));
  };
  double issue = 0, each = 0; // seconds of one core
  for (const Counts &part : parts) {
    const double instructions = blockSeconds(part, target) * std::max(1.0, part.blocks);
    issue += instructions;
    each +=
        std::max(instructions, compulsorySeconds(part, target, parallel(part)) * parallel(part));
  }
  // What hides behind staging copies is counted with those.
  const double staged =
      servedSeconds(whole, target, parallel(whole), whole.stagedBytes) * parallel(whole);
  const double slots = std::max(issue, each - staged) * vectorsPerSecond(target) /
                       (whole.blocks * whole.unitsPerBlock);
  whole.stalls = std::max(whole.stalls, slots - whole.vectorOps);
}

void applyWorstOccupancy(std::span<Counts> phases) {
  for (double Counts::*count : {&Counts::registersPerThread, &Counts::sharedBytesPerBlock}) {
    double most = 0;
    for (const Counts &phase : phases)
      most = std::max(most, phase.*count);
    for (Counts &phase : phases)
      phase.*count = most;
  }
}

double delta(const Counts &c, const Target &target) { return best(c, target, true); }

double latency(const Counts &c, const Target &target) { return best(c, target, false); }

bool joinsPhases(const Target &target) {
  return target.kind != TargetKind::Cpu && target.deviceBarrierSec < target.launchSec;
}

double savedByPhase(const Target &target) {
  return joinsPhases(target) ? target.launchSec - target.deviceBarrierSec : 0;
}

double waves(const Counts &c, int64_t resident) {
  return std::ceil(c.blocks / double(std::max<int64_t>(resident, 1)));
}

namespace {

double counterSeconds(double wavesBefore, double wavesAfter, const Target &target) {
  return wavesBefore * target.signalSec + wavesAfter * target.awaitSec;
}

double counterSeconds(const Counts &before, const Counts &after, const Target &target) {
  return counterSeconds(waves(before, residentBlocks(before, target)),
                        waves(after, residentBlocks(after, target)), target);
}

bool countersPay(double counterSeconds, const Target &target) {
  return joinsPhases(target) && target.signalSec > 0 && counterSeconds < target.deviceBarrierSec;
}

/// Seconds in which the kernel resets its counters: blocks count themselves at their end, and the last one resets.
double clearSeconds(const Target &target) { return target.signalSec + target.awaitSec; }

} // namespace

bool countersPay(const Counts &before, const Counts &after, const Target &target) {
  return countersPay(counterSeconds(before, after, target), target);
}

double savedByCounters(std::span<const double> waves, const Target &target) {
  double saved = -clearSeconds(target);
  for (size_t p = 1; p < waves.size(); ++p)
    if (const double seconds = counterSeconds(waves[p - 1], waves[p], target);
        countersPay(seconds, target))
      saved += target.deviceBarrierSec - seconds;
  return std::max(0.0, saved);
}

double latency(std::span<const Counts> phases, const Target &target) {
  double seconds = 0, runs = 0;
  bool counted = false;
  for (size_t p = 0; p < phases.size(); ++p) {
    const Counts &phase = phases[p];
    if (phase.waits)
      seconds += counterSeconds(phases[p - 1], phase, target) - target.deviceBarrierSec;
    counted = counted || phase.waits;
    Counts again = phase;
    again.constantBytes = 0;
    seconds += latency(phase, target) + (phase.rounds - 1) * latency(again, target);
    runs += phase.rounds;
  }
  if (counted)
    seconds += clearSeconds(target);
  return seconds - (runs - 1) * savedByPhase(target);
}

} // namespace fusec::cost

#include "Cost/Cost.h"

#include <algorithm>
#include <cmath>

namespace fusec::cost {

namespace {

/// Part of its issue rate that a GPU's core reaches: each unit waits for its own results, some four cycles at best, and
/// a core has four schedulers, so that 16 units keep it busy (CUDA C++ Programming Guide, multiprocessor level).
double issueShare(const Counts &c, const Target &target) {
  if (target.kind == TargetKind::Cpu)
    return 1;
  constexpr double kBusy = 16;
  double resident = std::max(1.0, target.maxThreadsPerCore / (c.unitsPerBlock * target.lanes));
  double blocks = std::clamp(std::ceil(c.blocks / target.cores), 1.0, resident);
  return std::min(1.0, blocks * c.unitsPerBlock / kBusy);
}

/// Seconds that one core (SM, CU) needs for one block's instructions and inner-memory traffic. Two fma ports and two
/// load ports on a CPU; on a GPU flopsPerSec already counts all of an SM's schedulers.
double blockSeconds(const Counts &c, const Target &target) {
  bool cpu = target.kind == TargetKind::Cpu;
  double flopsPerCore = cpu ? target.flopsPerSec : target.flopsPerSec / target.cores;
  double vectorsPerSec = flopsPerCore / (2.0 * target.lanes);
  double arithmetic = c.vectorOps / vectorsPerSec;
  // Loads issue beside arithmetic, at the same rate on a CPU, at a quarter of it on a GPU (load/store units).
  double loads = c.vectorLoads / (cpu ? vectorsPerSec : vectorsPerSec / 4);
  // Lanes that lie apart are served one by one: each takes a load of its own.
  double gathers = c.gathers / (cpu ? vectorsPerSec : vectorsPerSec / 4);
  double inner = target.memory.empty() ? 0 : c.innerBytes / target.memory.front().bytesPerSec;
  return std::max({arithmetic, loads + gathers, inner}) * c.unitsPerBlock;
}

/// Of the device's memory, for that many blocks: a core draws its share and no more.
double bandwidthFor(double parallel, const Target &target) {
  double whole = target.memory.empty() ? 1e11 : target.memory.back().bytesPerSec;
  return whole * parallel / target.cores;
}

} // namespace

double delta(const Counts &c, const Target &target) {
  double parallel = std::max(1.0, std::min(c.blocks, double(target.cores)));
  double bandwidth = bandwidthFor(parallel, target);
  return c.launches * target.launchSec + std::max(blockSeconds(c, target) * c.blocks / parallel,
                                                  (c.readBytes + c.writtenBytes) / bandwidth);
}

double latency(const Counts &c, const Target &target) {
  double waves = std::ceil(std::max(1.0, c.blocks) / target.cores);
  double bandwidth = bandwidthFor(std::clamp(c.blocks, 1.0, double(target.cores)), target);
  double work = waves * (blockSeconds(c, target) / issueShare(c, target) +
                         c.barriers * target.blockBarrierSec);
  return c.launches * target.launchSec + std::max(work, (c.readBytes + c.writtenBytes) / bandwidth);
}

bool joinsPhases(const Target &target) {
  return target.kind != TargetKind::Cpu && target.deviceBarrierSec < target.launchSec;
}

double latency(std::span<const Counts> phases, const Target &target) {
  double seconds = 0;
  for (const Counts &phase : phases)
    seconds += latency(phase, target);
  const double saved = joinsPhases(target) ? target.launchSec - target.deviceBarrierSec : 0;
  return seconds - double(phases.size() - 1) * saved;
}

} // namespace fusec::cost

#include "MachineTable.h"

#include <algorithm>
#include <cstdio>

namespace fusert {

const Figure *Measured::find(const std::string &what, int ofThreads, int64_t bytes) const {
  for (const Figure &f : figures)
    if (f.what == what && f.threads == ofThreads && f.bytes == bytes)
      return &f;
  return nullptr;
}

const Figure *Measured::first(const std::string &what) const {
  for (const Figure &f : figures)
    if (f.what == what)
      return &f;
  return nullptr;
}

double MachineTable::constant(const std::string &name) const {
  for (const auto &[key, value] : constants)
    if (key == name)
      return value;
  return 0;
}

namespace {

double seconds(const Measured &m, const std::string &what) {
  const Figure *f = m.first(what);
  return f ? f->median : 0;
}

/// Copies in a cache: of half of a core's own; of the smallest working set that is well beyond those of the cores in a
/// cache that they share, since others may use it too. Null where no working set fits.
const Figure *inCache(const Measured &m, const std::vector<Cache> &caches, size_t cache) {
  const bool shared = caches[cache].shared;
  const int users = shared ? m.threads : 1;
  const int64_t inner = cache > 0 ? caches[cache - 1].bytes * 2 * users : 0;
  const Figure *best = nullptr;
  for (const Figure &f : m.figures)
    if (f.what == "copy" && f.threads == users && f.bytes <= caches[cache].bytes / 2 &&
        f.bytes > inner && !(best && shared))
      best = &f;
  return best;
}

const Figure &largestCopy(const Measured &m) {
  const Figure *last = nullptr;
  for (const Figure &f : m.figures)
    if (f.what == "copy" && f.threads == m.threads)
      last = &f;
  return *last;
}

std::vector<Level> levelsOfCpu(const Measured &m, const std::vector<Cache> &caches) {
  std::vector<Level> list;
  for (size_t c = 0; c < caches.size(); ++c)
    if (const Figure *copy = inCache(m, caches, c))
      list.push_back({caches[c].name, caches[c].bytes, copy->median, caches[c].shared});
  list.push_back({"dram", 0, largestCopy(m).median, true});
  return list;
}

/// The bandwidth of the slower way of copying as a fraction of the faster one's; at most 1.
double share(const Measured &m, const Figure &copy, const char *slower, const char *faster) {
  return std::min(1.0, m.find(slower, copy.threads, copy.bytes)->median /
                           m.find(faster, copy.threads, copy.bytes)->median);
}

MachineTable tableOfCpu(const Measured &m, const std::vector<Cache> &caches) {
  MachineTable table;
  // The outermost cache that a working set fits; without one the smallest set, which is in some cache.
  const Figure *cached = nullptr, *own = nullptr;
  for (size_t c = 0; c < caches.size(); ++c)
    if (const Figure *copy = inCache(m, caches, c)) {
      cached = copy;
      if (!caches[c].shared)
        own = copy;
    }
  const Figure &smallest = *m.first("copy");
  const Figure &ofOwn = own ? *own : smallest;
  const double cycle = seconds(m, "cycle");
  const bool shared = m.threads > 1;
  table.constants = {
      {"kHertz", 1 / cycle},
      {"c.panelBytesPerCycle", m.find("product", ofOwn.threads, ofOwn.bytes)->median * cycle},
      {"c.oneRowShare", share(m, largestCopy(m), "copy", "rows")},
      {"c.severalRowsShare", share(m, cached ? *cached : smallest, "rows", "copy")},
      {"t.cores", m.threads},
      {"t.launchSec", seconds(m, shared ? "shared_launch" : "launch")},
      {"t.ownLaunchSec", seconds(m, "cold_launch")},
      {"t.deviceBarrierSec", seconds(m, shared ? "shared_phase" : "phase")}};
  // Rates follow from kHertz and what a core's manual says; a cache that cores share is measured by copies alone.
  table.notMeasured = {"t.flopsPerSec", "t.loadShare", "c.rereadBytesPerSec"};
  table.memory = levelsOfCpu(m, caches);
  table.reachesMemory = caches.empty() || largestCopy(m).bytes > 2 * caches.back().bytes;
  return table;
}

MachineTable tableOfGpu(const Measured &m) {
  MachineTable table;
  table.constants = {{"t.launchSec", seconds(m, "launch")},
                     {"t.ownLaunchSec", seconds(m, "launch")},
                     {"t.blockBarrierSec", seconds(m, "block_barrier")}};
  // Counters between blocks are the two parts of such a barrier, which is measured as a whole.
  table.notMeasured = {"t.signalSec",   "t.awaitSec",    "t.waitSec",
                       "t.readsAtOnce", "t.flopsPerSec", "t.loadShare"};
  if (m.first("grid_barrier")) // the device has launches of blocks that wait for each other
    table.constants.emplace_back("t.deviceBarrierSec", seconds(m, "grid_barrier"));
  else
    table.notMeasured.emplace_back("t.deviceBarrierSec");
  const Figure &shared = *m.first("shared"), *l2 = m.first("l2");
  table.memory = {{"shared", shared.bytes, shared.median / shared.threads}};
  if (l2)
    table.memory.push_back({"l2", l2->bytes, l2->median, true});
  table.memory.push_back({"dram", 0, m.figures.back().median, true});
  table.reachesMemory = l2 && m.figures.back().bytes > 2 * l2->bytes;
  return table;
}

} // namespace

MachineTable tableOf(const Measured &measured, const std::vector<Cache> &caches) {
  MachineTable table = measured.isGpu() ? tableOfGpu(measured) : tableOfCpu(measured, caches);
  table.cores = measured.threads;
  return table;
}

std::vector<std::string> outOfOrder(const MachineTable &table) {
  std::vector<std::string> list;
  auto add = [&](const std::string &nearer, const std::string &farther, double a, double b,
                 const char *unit) {
    char text[160];
    std::snprintf(text, sizeof text, "%s %.2g%s, %s %.2g%s", nearer.c_str(), a, unit,
                  farther.c_str(), b, unit);
    list.push_back(text);
  };
  auto ofCore = [&](const Level &level) {
    return level.ofDevice ? level.bytesPerSec / table.cores : level.bytesPerSec;
  };
  for (size_t l = 0; l + 1 < table.memory.size(); ++l) {
    const Level &nearer = table.memory[l], &farther = table.memory[l + 1];
    if (ofCore(nearer) < ofCore(farther))
      add(nearer.name, farther.name, ofCore(nearer) * 1e-9, ofCore(farther) * 1e-9,
          " GB/s of a core");
  }
  constexpr std::pair<const char *, const char *> kShorter[] = {
      {"t.ownLaunchSec", "t.launchSec"}, {"t.blockBarrierSec", "t.deviceBarrierSec"}};
  for (const auto &[shorter, longer] : kShorter) {
    const double less = table.constant(shorter), more = table.constant(longer);
    if (less > more && more > 0 && table.cores > 1)
      add(shorter, longer, less * 1e6, more * 1e6, " us");
  }
  return list;
}

} // namespace fusert

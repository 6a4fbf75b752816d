// What this machine can do, measured by the runtime and put into the form of the compiler's tables.
#include "Commands.h"
#include "ToolError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace fusert {

namespace {

struct Figure {
  std::string what;
  int threads;
  int64_t bytes;
  double lowest, median, highest;
};

struct Measured {
  std::string device;
  std::vector<Figure> figures;
  int threads = 1;

  const Figure *find(const std::string &what, int ofThreads, int64_t bytes = 0) const {
    for (const Figure &f : figures)
      if (f.what == what && f.threads == ofThreads && f.bytes == bytes)
        return &f;
    return nullptr;
  }
  const Figure *first(const std::string &what) const {
    for (const Figure &f : figures)
      if (f.what == what)
        return &f;
    return nullptr;
  }
  double seconds(const std::string &what) const {
    const Figure *f = first(what);
    return f ? f->median : 0;
  }
  bool isGpu() const { return first("block_barrier") != nullptr; }
};

/// Costs as lib/Target/Target.h has them.
struct Costs {
  double launchSec, blockBarrierSec, deviceBarrierSec;
};

Costs costs(const Measured &m) {
  if (m.isGpu())
    return {m.seconds("launch"), m.seconds("block_barrier"), m.seconds("grid_barrier")};
  const bool shared = m.threads > 1;
  return {m.seconds(shared ? "shared_launch" : "launch"), 0,
          m.seconds(shared ? "shared_phase" : "phase")};
}

/// A level of memory as lib/Target/Target.h has it: a core's share, the last one of all threads together.
struct Level {
  std::string name;
  int64_t capacityBytes;
  double bytesPerSec;
  bool ofDevice = false; // of a GPU as a whole
};

Measured measure(const CalibrateOptions &options) {
  Measured out;
  fusert_calibrate_options o{};
  o.struct_size = sizeof o;
  o.target = options.target.empty() ? nullptr : options.target.c_str();
  o.threads = options.threads;
  o.repetitions = options.repetitions;
  o.largest_bytes = options.largestMebibytes << 20;
  require(fusert_calibrate(
      &o,
      [](void *user, const fusert_figure *f) {
        Measured &m = *static_cast<Measured *>(user);
        m.device = f->device;
        m.threads = std::max(m.threads, f->threads);
        m.figures.push_back({f->what, f->threads, f->bytes, f->lowest, f->median, f->highest});
      },
      &out));
  return out;
}

struct Cache {
  const char *name;
  int64_t bytes; // of one core; of all together where `shared`
  bool shared;
};

/// As the system tells; a size that it does not know is left out.
std::vector<Cache> caches() {
  std::vector<Cache> list = {{"l1", sysconf(_SC_LEVEL1_DCACHE_SIZE), false},
                             {"l2", sysconf(_SC_LEVEL2_CACHE_SIZE), false},
                             {"l3", sysconf(_SC_LEVEL3_CACHE_SIZE), true}};
  std::erase_if(list, [](const Cache &c) { return c.bytes <= 0; });
  return list;
}

/// Copies of half of a core's own cache; of the smallest working set that is well beyond those of the cores for a cache
/// that they share, since others may use it too; of the largest for the memory. A cache that no working set fits is
/// left out.
std::vector<Level> levelsOfCpu(const Measured &m) {
  std::vector<Level> list;
  int64_t inner = 0; // a core's own caches so far
  for (const Cache &cache : caches()) {
    const int users = cache.shared ? m.threads : 1;
    const Figure *best = nullptr;
    for (const Figure &f : m.figures)
      if (f.what == "copy" && f.threads == users && f.bytes <= cache.bytes / 2 &&
          f.bytes > inner * 2 * users && !(best && cache.shared))
        best = &f;
    if (best)
      list.push_back(
          {cache.name, cache.shared ? cache.bytes / users : cache.bytes, best->median / users});
    if (!cache.shared)
      inner = cache.bytes;
  }
  const Figure *last = nullptr;
  for (const Figure &f : m.figures)
    if (f.what == "copy" && f.threads == m.threads)
      last = &f;
  list.push_back({"dram", 0, last->median});
  return list;
}

std::vector<Level> levels(const Measured &m) {
  if (!m.isGpu())
    return levelsOfCpu(m);
  const Figure &shared = *m.first("shared");
  std::vector<Level> list = {{"shared", shared.bytes, shared.median / shared.threads}};
  if (const Figure *l2 = m.first("l2"))
    list.push_back({"l2", l2->bytes, l2->median, true});
  list.push_back({"dram", 0, m.figures.back().median, true});
  return list;
}

/// Whether the largest working set is too large for the last cache.
bool reachesMemory(const Measured &m) {
  if (m.isGpu())
    return m.first("l2") && m.figures.back().bytes > 2 * m.first("l2")->bytes;
  const std::vector<Cache> list = caches();
  return list.empty() || m.figures.back().bytes > 2 * list.back().bytes;
}

std::string percent(const Figure &f) {
  char text[32];
  std::snprintf(text, sizeof text, "+-%.0f%%", std::round((f.highest - f.lowest) / f.median * 50));
  return text;
}

void printJson(const Measured &m, const CalibrateOptions &options) {
  std::printf("{\"device\":%s,\"threads\":%d,\"repetitions\":%d,\"figures\":[",
              jsonString(m.device).c_str(), m.threads, options.repetitions);
  for (size_t i = 0; i < m.figures.size(); ++i) {
    const Figure &f = m.figures[i];
    std::printf("%s{\"what\":\"%s\",\"threads\":%d,\"bytes\":%lld,\"lowest\":%.6g,"
                "\"median\":%.6g,\"highest\":%.6g}",
                i ? "," : "", f.what.c_str(), f.threads, static_cast<long long>(f.bytes), f.lowest,
                f.median, f.highest);
  }
  const Costs c = costs(m);
  std::printf("],\"table\":{\"launchSec\":%.3g,\"blockBarrierSec\":%.3g,\"deviceBarrierSec\":%.3g,"
              "\"memory\":[",
              c.launchSec, c.blockBarrierSec, c.deviceBarrierSec);
  const std::vector<Level> list = levels(m);
  for (size_t i = 0; i < list.size(); ++i)
    std::printf("%s{\"name\":\"%s\",\"capacityBytes\":%lld,\"bytesPerSec\":%.3g}", i ? "," : "",
                list[i].name.c_str(), static_cast<long long>(list[i].capacityBytes),
                list[i].bytesPerSec);
  std::printf("],\"reaches_memory\":%s}}\n", reachesMemory(m) ? "true" : "false");
}

void printGpuFigures(const Measured &m) {
  for (const Figure &f : m.figures) {
    const bool seconds = f.bytes == 0;
    std::printf("%-14s %10lld KiB %9.4g %s %s\n", f.what.c_str(),
                static_cast<long long>(f.bytes >> 10), f.median * (seconds ? 1e6 : 1e-9),
                seconds ? "us" : "GB/s", percent(f).c_str());
  }
}

void printCpuFigures(const Measured &m) {
  for (const Figure &f : m.figures)
    if (f.bytes == 0)
      std::printf("%-14s %2d thread%s %8.3f us %s\n", f.what.c_str(), f.threads,
                  f.threads > 1 ? "s" : " ", f.median * 1e6, percent(f).c_str());
  std::printf("\nGB/s            working set             read             copy           stream\n");
  for (const Figure &read : m.figures) {
    if (read.what != "read")
      continue;
    std::printf("%2d thread%s %10lld KiB each", read.threads, read.threads > 1 ? "s" : " ",
                static_cast<long long>(read.bytes / read.threads >> 10));
    for (const char *what : {"read", "copy", "stream"}) {
      const Figure &f = *m.find(what, read.threads, read.bytes);
      std::printf(" %8.1f %7s", f.median * 1e-9, percent(f).c_str());
    }
    std::printf("\n");
  }
}

void printTable(const Measured &m) {
  const Costs c = costs(m);
  if (m.isGpu())
    std::printf("\n  // %s, %d multiprocessors.\n  t.launchSec = %.2g;\n"
                "  t.blockBarrierSec = %.2g;\n",
                printable(m.device).c_str(), m.threads, c.launchSec, c.blockBarrierSec);
  else
    std::printf("\n  // %s, %d thread%s. Handed to all of them; one alone: %.2g s.\n"
                "  t.launchSec = %.2g;\n  t.blockBarrierSec = 0; // a block has one core\n",
                printable(m.device).c_str(), m.threads, m.threads > 1 ? "s" : "",
                m.seconds("launch"), c.launchSec);
  std::printf("  t.deviceBarrierSec = %.2g;\n", c.deviceBarrierSec);
  const char *before = "  t.memory = {";
  for (const Level &level : levels(m)) {
    std::printf("%s{\"%s\", %lld, %.2g%s}", before, level.name.c_str(),
                static_cast<long long>(level.capacityBytes), level.bytesPerSec,
                level.ofDevice ? ", true" : "");
    before = ",\n              ";
  }
  std::printf("};\n");
  if (!reachesMemory(m))
    std::printf("note: \"dram\" is of a working set that the last cache may hold: --largest\n");
}

} // namespace

int calibrate(const CalibrateOptions &options) {
  const Measured m = measure(options);
  if (options.json) {
    printJson(m, options);
    return 0;
  }
  std::printf("%s, %d %s%s, median of %d repetitions, half the spread between them\n\n",
              printable(m.device).c_str(), m.threads, m.isGpu() ? "multiprocessor" : "thread",
              m.threads > 1 ? "s" : "", options.repetitions);
  m.isGpu() ? printGpuFigures(m) : printCpuFigures(m);
  printTable(m);
  return 0;
}

} // namespace fusert

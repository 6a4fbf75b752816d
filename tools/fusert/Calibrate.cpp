// What this machine can do, measured by the runtime and put into the form of the compiler's tables.
#include "Commands.h"
#include "MachineTable.h"
#include "ToolError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace fusert {

namespace {

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

/// As the system tells; a size that it does not know is left out.
std::vector<Cache> caches() {
  std::vector<Cache> list = {{"l1", sysconf(_SC_LEVEL1_DCACHE_SIZE), false},
                             {"l2", sysconf(_SC_LEVEL2_CACHE_SIZE), false},
                             {"l3", sysconf(_SC_LEVEL3_CACHE_SIZE), true}};
  std::erase_if(list, [](const Cache &c) { return c.bytes <= 0; });
  return list;
}

/// Half of what lies between the lowest and the highest repetition, of the median.
double spread(const Figure &f) { return (f.highest - f.lowest) / f.median / 2; }

std::string percent(const Figure &f) {
  char text[32];
  std::snprintf(text, sizeof text, "+-%.0f%%", std::round(spread(f) * 100));
  return text;
}

void printList(const char *name, const std::vector<std::string> &list) {
  std::printf(",\"%s\":[", name);
  for (size_t i = 0; i < list.size(); ++i)
    std::printf("%s%s", i ? "," : "", jsonString(list[i]).c_str());
  std::printf("]");
}

void printJson(const Measured &m, const MachineTable &table, const CalibrateOptions &options) {
  std::printf("{\"device\":%s,\"threads\":%d,\"repetitions\":%d,\"figures\":[",
              jsonString(m.device).c_str(), m.threads, options.repetitions);
  for (size_t i = 0; i < m.figures.size(); ++i) {
    const Figure &f = m.figures[i];
    std::printf("%s{\"what\":\"%s\",\"threads\":%d,\"bytes\":%lld,\"lowest\":%.6g,"
                "\"median\":%.6g,\"highest\":%.6g}",
                i ? "," : "", f.what.c_str(), f.threads, static_cast<long long>(f.bytes), f.lowest,
                f.median, f.highest);
  }
  std::printf("],\"table\":{");
  for (const auto &[name, value] : table.constants)
    std::printf("\"%s\":%.3g,", name.c_str(), value);
  std::printf("\"t.memory\":[");
  for (size_t i = 0; i < table.memory.size(); ++i) {
    const Level &level = table.memory[i];
    std::printf("%s{\"name\":\"%s\",\"capacityBytes\":%lld,\"bytesPerSec\":%.3g,\"ofDevice\":%s}",
                i ? "," : "", level.name.c_str(), static_cast<long long>(level.capacityBytes),
                level.bytesPerSec, level.ofDevice ? "true" : "false");
  }
  std::printf("]},\"reaches_memory\":%s", table.reachesMemory ? "true" : "false");
  printList("out_of_order", outOfOrder(table));
  printList("not_measured", table.notMeasured);
  std::printf("}\n");
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
      std::printf("%-14s %2d thread%s %8.4f us %s\n", f.what.c_str(), f.threads,
                  f.threads > 1 ? "s" : " ", f.median * 1e6, percent(f).c_str());
  constexpr const char *kSweeps[] = {"read", "copy", "stream", "rows", "product"};
  std::printf("\n%-27s", "GB/s            working set");
  for (const char *what : kSweeps)
    std::printf(" %16s", what);
  std::printf("\n");
  for (const Figure &read : m.figures) {
    if (read.what != "read")
      continue;
    std::printf("%2d thread%s %10lld KiB each", read.threads, read.threads > 1 ? "s" : " ",
                static_cast<long long>(read.bytes / read.threads >> 10));
    for (const char *what : kSweeps) {
      const Figure &f = *m.find(what, read.threads, read.bytes);
      std::printf(" %8.1f %7s", f.median * 1e-9, percent(f).c_str());
    }
    std::printf("\n");
  }
}

/// As it stands in a table of lib/Target.
void printTable(const Measured &m, const MachineTable &table) {
  std::printf("\n  // %s, %d %s%s.\n", printable(m.device).c_str(), m.threads,
              m.isGpu() ? "multiprocessor" : "thread", m.threads > 1 ? "s" : "");
  for (const auto &[name, value] : table.constants)
    std::printf("  %s%s = %.2g;\n", name[0] == 'k' ? "constexpr double " : "", name.c_str(), value);
  const char *before = "  t.memory = {";
  for (const Level &level : table.memory) {
    std::printf("%s{\"%s\", %lld, %.2g%s}", before, level.name.c_str(),
                static_cast<long long>(level.capacityBytes), level.bytesPerSec,
                level.ofDevice ? ", true" : "");
    before = ",\n              ";
  }
  std::printf("};\n");
  std::printf("note: not measured, the table's own:");
  for (const std::string &name : table.notMeasured)
    std::printf(" %s", name.c_str());
  std::printf("\n");
  if (!table.reachesMemory)
    std::printf("note: \"dram\" is of a working set that the last cache may hold: --largest\n");
  // What repetitions differ by where a machine has nothing else to do.
  constexpr double kQuiet = 0.1;
  if (const auto wild = std::count_if(m.figures.begin(), m.figures.end(),
                                      [](const Figure &f) { return spread(f) > kQuiet; });
      wild > 0)
    std::printf("warning: %lld of %zu figures vary by more than 10%%; measure again while nothing "
                "else runs\n",
                static_cast<long long>(wild), m.figures.size());
  for (const std::string &pair : outOfOrder(table))
    std::printf("warning: out of order: %s; measure again while nothing else runs\n", pair.c_str());
}

} // namespace

int calibrate(const CalibrateOptions &options) {
  const Measured m = measure(options);
  const MachineTable table = tableOf(m, caches());
  if (options.json) {
    printJson(m, table, options);
    return 0;
  }
  std::printf("%s, %d %s%s, median of %d repetitions, half the spread between them\n\n",
              printable(m.device).c_str(), m.threads, m.isGpu() ? "multiprocessor" : "thread",
              m.threads > 1 ? "s" : "", options.repetitions);
  m.isGpu() ? printGpuFigures(m) : printCpuFigures(m);
  printTable(m, table);
  return 0;
}

} // namespace fusert

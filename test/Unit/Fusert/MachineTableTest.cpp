// Figures of a machine as the compiler's tables hold them, and readings that cannot be.
#include "MachineTable.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusert;

namespace {

constexpr int64_t kKib = 1 << 10, kMib = 1 << 20;
const std::vector<Cache> kCaches = {
    {"l1", 32 * kKib, false}, {"l2", kMib, false}, {"l3", 32 * kMib, true}};

/// Two cores whose copies take 100 GB/s each in L1, 60 in L2, 40 in L3 and 12 from memory.
Measured twoCores() {
  Measured m;
  m.device = "CPU";
  m.threads = 2;
  auto add = [&](const char *what, int threads, int64_t bytes, double value) {
    m.figures.push_back({what, threads, bytes, value, value, value});
  };
  add("launch", 1, 0, 6e-9);
  add("phase", 1, 0, 5e-9);
  add("cold_launch", 1, 0, 1e-7);
  add("cycle", 1, 0, 0.25e-9);
  add("shared_launch", 2, 0, 8e-7);
  add("shared_phase", 2, 0, 7e-7);
  for (int threads : {1, 2})
    for (int64_t each = 16 * kKib; each <= 64 * kMib; each *= 2) {
      const bool inMemory = each * threads > 32 * kMib;
      const double copy = threads * (each <= 32 * kKib ? 100e9
                                     : each <= kMib    ? 60e9
                                     : inMemory        ? 12e9
                                                       : 40e9);
      add("read", threads, each * threads, 2 * copy);
      add("copy", threads, each * threads, copy);
      add("stream", threads, each * threads, copy);
      add("rows", threads, each * threads, inMemory ? 1.25 * copy : 0.75 * copy);
      add("product", threads, each * threads, 1.5 * copy);
    }
  return m;
}

Measured gpu(double blockBarrier, double sharedRate) {
  Measured m;
  m.device = "GPU";
  m.threads = 10;
  m.figures = {{"launch", 10, 0, 4e-6, 4e-6, 4e-6},
               {"block_barrier", 10, 0, blockBarrier, blockBarrier, blockBarrier},
               {"grid_barrier", 10, 0, 1e-6, 1e-6, 1e-6},
               {"shared", 10, 48 * kKib, sharedRate, sharedRate, sharedRate},
               {"l2", 10, 4 * kMib, 400e9, 400e9, 400e9},
               {"copy", 10, 64 * kMib, 200e9, 200e9, 200e9}};
  return m;
}

} // namespace

TEST_CASE("the table of a processor holds every constant that is measured") {
  const MachineTable table = tableOf(twoCores(), kCaches);
  using Constants = std::vector<std::pair<std::string, double>>;
  CHECK(table.constants == Constants{{"kHertz", 1 / 0.25e-9},
                                     {"c.panelBytesPerCycle", 1.5 * 60e9 * 0.25e-9},
                                     {"c.oneRowShare", 0.8},
                                     {"c.severalRowsShare", 0.75},
                                     {"t.cores", 2},
                                     {"t.launchSec", 8e-7},
                                     {"t.ownLaunchSec", 1e-7},
                                     {"t.deviceBarrierSec", 7e-7}});
  REQUIRE(table.memory.size() == 4);
  const Level &l2 = table.memory[1], &l3 = table.memory[2], &memory = table.memory[3];
  CHECK((l2.name == "l2" && l2.bytesPerSec == 60e9 && !l2.ofDevice));
  CHECK((l3.name == "l3" && l3.bytesPerSec == 80e9 && l3.capacityBytes == 32 * kMib));
  CHECK(l3.ofDevice);
  CHECK((memory.name == "dram" && memory.bytesPerSec == 24e9 && memory.ofDevice));
  CHECK(table.reachesMemory);
  CHECK(outOfOrder(table).empty());
}

TEST_CASE("what the table of a GPU holds and was not measured is told") {
  using List = std::vector<std::string>;
  Measured m = gpu(1e-8, 1000e9);
  const List always = {"t.signalSec",   "t.awaitSec",    "t.waitSec",
                       "t.readsAtOnce", "t.flopsPerSec", "t.loadShare"};
  CHECK(tableOf(m, {}).notMeasured == always);
  CHECK(tableOf(m, {}).constant("t.ownLaunchSec") == 4e-6);
  std::erase_if(m.figures, [](const Figure &f) { return f.what == "grid_barrier"; });
  List without = always;
  without.emplace_back("t.deviceBarrierSec");
  CHECK(tableOf(m, {}).notMeasured == without);
}

TEST_CASE("a way of copying that is no slower has the whole bandwidth") {
  Measured m = twoCores();
  for (Figure &f : m.figures)
    if (f.what == "rows")
      f.median = m.find("copy", f.threads, f.bytes)->median;
  const MachineTable table = tableOf(m, kCaches);
  CHECK(table.constant("c.oneRowShare") == 1);
  CHECK(table.constant("c.severalRowsShare") == 1);
}

TEST_CASE("readings that cannot be are told") {
  Measured m = twoCores();
  for (Figure &f : m.figures) {
    if (f.what == "copy" && f.threads == 1)
      f.median /= 2; // L2 of one core, now slower than its part of L3
    if (f.what == "cold_launch")
      f.median = 1e-6;
  }
  using List = std::vector<std::string>;
  CHECK(outOfOrder(tableOf(m, kCaches)) == List{"l2 30 GB/s of a core, l3 40 GB/s of a core",
                                                "t.ownLaunchSec 1 us, t.launchSec 0.8 us"});
  CHECK(outOfOrder(tableOf(gpu(1e-8, 1000e9), {})).empty());
  CHECK(outOfOrder(tableOf(gpu(2e-6, 300e9), {})) ==
        List{"shared 30 GB/s of a core, l2 40 GB/s of a core",
             "t.blockBarrierSec 2 us, t.deviceBarrierSec 1 us"});
}

// The tables of targets: what any row must satisfy, and the figures against what the vendors state independently.
#include "Target/Target.h"
#include "Support/Diag.h"
#include "Target/OnChip.h"

#include <catch2/catch_all.hpp>

#include <map>
#include <set>

using namespace fusec;

namespace {

std::vector<Target> all() {
  std::vector<Target> list;
  for (const std::string &name : targetNames()) {
    Result<Target> target = lookupTarget(name);
    REQUIRE(target.ok());
    list.push_back(*target);
  }
  return list;
}

} // namespace

TEST_CASE("Every target is found by its name, a GPU also behind sim:") {
  std::set<std::string> names;
  for (const Target &t : all()) {
    INFO(t.name);
    CHECK(names.insert(t.name).second);
    CHECK_FALSE(t.sim);
    Result<Target> simulated = lookupTarget("sim:" + t.name);
    REQUIRE(simulated.ok() == (t.kind != TargetKind::Cpu));
    if (!simulated.ok())
      continue;
    CHECK(simulated->sim);
    CHECK(simulated->name == "sim:" + t.name);
    CHECK(simulated->sharedBytesPerBlock == t.sharedBytesPerBlock);
    CHECK(simulated->mostSharedBytes() == t.mostSharedBytes());
    CHECK(simulated->lanes == t.lanes);
  }
  CHECK(names.count(lookupTarget("host")->name));
  for (auto [product, architecture] :
       {std::pair{"a100", "sm_80"}, {"h200", "sm_90"}, {"mi250", "gfx90a"}, {"mi300x", "gfx942"}})
    CHECK(lookupTarget(product)->name == architecture);
}

TEST_CASE("An unknown target is refused with the names that are known") {
  for (const char *name : {"sm_1", "", "sim:", "sim:host", "sim:x86-64-v3", "SM_90", "sm_90 "}) {
    Result<Target> target = lookupTarget(name);
    REQUIRE_FALSE(target.ok());
    CHECK(target.errors().front().id == Diag::UnsupportedTarget);
    for (const std::string &known : targetNames())
      CHECK(target.errors().front().text.find(known) != std::string::npos);
  }
}

TEST_CASE("Units, registers and memory fit together") {
  for (const Target &t : all()) {
    INFO(t.name);
    CHECK(t.sharedBytesPerBlock < kMostOnChip);
    CHECK(4 * t.registersPerCore < kMostOnChip);
    CHECK((t.lanes & (t.lanes - 1)) == 0);
    CHECK(t.cores > 0);
    CHECK(t.sharedBytesPerBlock > 0);
    CHECK(t.launchSec > 0);
    CHECK(t.ownLaunchSec > 0);
    CHECK(t.ownLaunchSec <= t.launchSec);
    CHECK(t.deviceBarrierSec > t.blockBarrierSec);
    REQUIRE(t.memory.size() >= 2);
    CHECK(t.memory.back().capacityBytes == 0);
    // Outwards levels grow, and the cores together draw no more from the last than from the first.
    for (size_t level = 0; level + 1 < t.memory.size(); ++level) {
      CHECK(t.memory[level].capacityBytes > 0);
      if (level + 2 < t.memory.size())
        CHECK(t.memory[level].capacityBytes < t.memory[level + 1].capacityBytes);
    }
    CHECK(t.memory.front().bytesPerSec * t.cores > t.memory.back().bytesPerSec);
    if (t.kind == TargetKind::Cpu) {
      CHECK(t.maxUnits == 1);
      CHECK(t.mostSharedBytes() == 0);
      CHECK(t.lanes * 4 == (t.name == "x86-64-v3" ? 32 : 64)); // bytes of a ymm, a zmm register
      CHECK(t.vectorRegisters == (t.name == "x86-64-v3" ? 16 : 32));
      CHECK((t.vectorLanes && t.nearestIsCache && !t.keepsReads && !t.hidesLatency()));
      CHECK((!t.blocksHaveUnits() && t.unitsOf(256) == 1));
      continue;
    }
    CHECK(t.maxUnits * t.lanes == 1024); // threads a block, for both vendors
    CHECK(t.maxUnits * t.lanes <= t.maxThreadsPerCore);
    // A block that has all it may have is alone on its core.
    CHECK(t.sharedBytesPerBlock <= t.mostSharedBytes());
    CHECK(t.mostSharedBytes() + t.sharedReservedBytes == t.memory.front().capacityBytes);
    CHECK(t.staticSharedBytes > 0);
    CHECK((t.dynamicSharedBytes > 0) == (t.kind == TargetKind::Nvidia));
    // A block of the largest size can have 32 registers a thread.
    CHECK(t.registersPerCore >= 32 * 1024);
    CHECK(t.vectorRegisters <= 256);
    CHECK((t.hidesLatency() && t.keepsReads && !t.vectorLanes && !t.nearestIsCache));
    CHECK(t.unitsOf(256) * t.lanes == 256);
  }
}

TEST_CASE("The peaks of the GPUs are lanes times a clock that such chips have") {
  // fp32 lanes that a SM or CU adds with in one clock: CUDA C++ Programming Guide, "Arithmetic Instructions"; AMD's
  // instruction set manuals (RDNA3 issues two operations at once).
  const std::map<std::string, int> fp32Lanes = {
      {"sm_80", 64}, {"sm_90", 128}, {"gfx90a", 64}, {"gfx942", 64}, {"gfx1100", 128}};
  int checked = 0;
  for (const Target &t : all()) {
    if (t.kind == TargetKind::Cpu)
      continue;
    INFO(t.name);
    REQUIRE(fp32Lanes.count(t.name));
    double hertz = t.flopsPerSec / (2.0 * t.cores * fp32Lanes.at(t.name));
    CHECK(hertz > 1.3e9);
    CHECK(hertz < 2.6e9);
    ++checked;
  }
  CHECK(checked == 5);
}

// Properties of the cost model on every target: what must not get cheaper, and where its limits lie.
#include "Cost/Cost.h"

#include <catch2/catch_all.hpp>

#include <array>
#include <cmath>
#include <random>

using namespace fusec;
using namespace fusec::cost;

namespace {

using Member = double Counts::*;
/// Not stagedBytes: they say of what is read that it hides behind copies, not behind arithmetic.
constexpr std::pair<const char *, Member> kMembers[] = {
    {"vectorOps", &Counts::vectorOps},
    {"vectorLoads", &Counts::vectorLoads},
    {"stalls", &Counts::stalls},
    {"stagedLoads", &Counts::stagedLoads},
    {"gathers", &Counts::gathers},
    {"fills", &Counts::fills},
    {"reads", &Counts::reads},
    {"readBytes", &Counts::readBytes},
    {"writtenBytes", &Counts::writtenBytes},
    {"constantBytes", &Counts::constantBytes},
    {"barriers", &Counts::barriers},
    {"blocks", &Counts::blocks},
    {"unitsPerBlock", &Counts::unitsPerBlock},
    {"registersPerThread", &Counts::registersPerThread},
    {"sharedBytesPerBlock", &Counts::sharedBytesPerBlock},
    {"launches", &Counts::launches},
};

std::vector<Target> all() {
  std::vector<Target> list;
  for (const std::string &name : targetNames())
    list.push_back(*lookupTarget(name));
  return list;
}

Counts randomCounts(std::mt19937 &random) {
  auto number = [&](double largest) {
    return std::floor(largest * std::pow(static_cast<double>(random()) / random.max(), 3));
  };
  Counts c;
  c.vectorOps = number(1e6);
  c.vectorLoads = number(1e6);
  c.stalls = number(1e6);
  c.stagedLoads = number(1e5);
  c.gathers = number(1e4);
  c.fills = number(100);
  c.reads = number(1000);
  c.readBytes = number(1e9);
  c.stagedBytes = number(c.readBytes);
  c.writtenBytes = number(1e9);
  c.constantBytes = number(c.readBytes);
  for (double &bytes : c.levelBytes)
    bytes = number(1e9);
  c.barriers = number(100);
  c.registersPerThread = number(255);
  c.sharedBytesPerBlock = number(40000);
  c.blocks = 1 + number(10000);
  c.unitsPerBlock = 1 + number(31);
  c.launches = 1 + number(5);
  return c;
}

} // namespace

TEST_CASE("More of anything never costs less, in either fidelity") {
  std::mt19937 random(1);
  for (const Target &target : all())
    for (int round = 0; round < 300; ++round) {
      const Counts less = randomCounts(random);
      for (auto [name, member] : kMembers) {
        Counts fewer = less;
        if (member == &Counts::blocks) { // the same bytes go faster to more blocks
          fewer.readBytes = fewer.writtenBytes = fewer.constantBytes = fewer.stagedBytes = 0;
          fewer.levelBytes = {};
        }
        Counts more = fewer;
        more.*member = more.*member * 2 + 1;
        if (member == &Counts::constantBytes)
          more.constantBytes = std::min(more.constantBytes, more.readBytes);
        INFO(target.name << " " << name << " " << less.*member);
        CHECK(latency(more, target) >= latency(fewer, target) * (1 - 1e-12));
        CHECK(delta(more, target) >= delta(fewer, target) * (1 - 1e-12));
      }
      for (size_t level = 0; level < target.memory.size(); ++level) {
        Counts more = less;
        more.levelBytes[level] = more.levelBytes[level] * 2 + 1;
        CHECK(latency(more, target) >= latency(less, target) * (1 - 1e-12));
      }
    }
}

TEST_CASE("A core draws its share of the bandwidth and no more") {
  for (const Target &target : all()) {
    INFO(target.name);
    Counts c;
    c.launches = 0;
    c.readBytes = 1e9;
    double alone = latency(c, target);
    c.blocks = target.cores;
    CHECK(latency(c, target) == Catch::Approx(alone / target.cores));
    c.blocks = 2.0 * target.cores;
    CHECK(latency(c, target) == Catch::Approx(alone / target.cores));
  }
}

TEST_CASE(
    "Compulsory bytes come from the smallest cache that holds them, large constants from memory") {
  for (const Target &target : all()) {
    INFO(target.name);
    Counts c;
    c.launches = 0;
    c.blocks = target.cores;
    const bool cpu = target.kind == TargetKind::Cpu;
    for (size_t level = cpu ? 0 : 1; level + 1 < target.memory.size(); ++level) {
      const MemoryLevel &cache = target.memory[level];
      const double each = cache.ofDevice ? 1 : target.cores;
      c.readBytes = double(cache.capacityBytes) * each;
      INFO(cache.name);
      CHECK(latency(c, target) == Catch::Approx(c.readBytes / (cache.bytesPerSec * each)));
    }
    const MemoryLevel &last = target.memory.end()[-2];
    const double memory = target.memory.back().bytesPerSec * target.core.oneRowShare;
    c.readBytes = double(last.capacityBytes) * 2;
    CHECK(latency(c, target) == Catch::Approx(c.readBytes / memory));
    c.readBytes = double(last.capacityBytes) * 1.5; // half of it is still there
    CHECK(latency(c, target) ==
          Catch::Approx(c.readBytes / 2 / memory + c.readBytes / 2 / last.bytesPerSec));
    // A weight matrix is not what the kernel before has written.
    c.readBytes = double(last.capacityBytes) / 2;
    const double written = latency(c, target);
    c.constantBytes = c.readBytes;
    CHECK(latency(c, target) == Catch::Approx(c.readBytes / memory));
    c.readBytes = c.constantBytes = double(last.capacityBytes) / 16;
    CHECK(latency(c, target) < written);
  }
}

TEST_CASE(
    "A CPU's core gets less of memory along one row than along four, and more of its caches") {
  for (const Target &target : all()) {
    INFO(target.name);
    Counts one, four;
    four.rowsAtOnce = 4;
    one.launches = four.launches = 0;
    one.blocks = four.blocks = target.cores;
    one.readBytes = four.readBytes = double(target.memory.end()[-2].capacityBytes) / 2;
    CHECK(latency(one, target) ==
          Catch::Approx(latency(four, target) * target.core.severalRowsShare));
    one.readBytes = four.readBytes = one.readBytes * 1000;
    CHECK(latency(four, target) == Catch::Approx(latency(one, target) * target.core.oneRowShare));
    if (target.kind == TargetKind::Cpu) {
      CHECK(target.core.severalRowsShare < 1);
      CHECK(target.core.oneRowShare < 1);
    }
  }
}

TEST_CASE("Registers and shared memory decide how many blocks hide each other's latency") {
  const Target a100 = *lookupTarget("a100");
  Counts c;
  c.launches = 0;
  c.vectorOps = 1e6;
  c.unitsPerBlock = 4;
  c.blocks = 16.0 * a100.cores;
  const double free = latency(c, a100);
  c.sharedBytesPerBlock = 40 << 10; // four blocks, 16 units: enough
  CHECK(latency(c, a100) == Catch::Approx(free));
  c.sharedBytesPerBlock = 80 << 10; // two
  CHECK(latency(c, a100) == Catch::Approx(2 * free));
  c.sharedBytesPerBlock = 0;
  c.registersPerThread = 255; // 64K / (128 x 256): two
  CHECK(latency(c, a100) == Catch::Approx(2 * free));
}

TEST_CASE("A kernel's phases hold what the neediest one does") {
  const Target a100 = *lookupTarget("a100");
  Counts big, small;
  small.vectorOps = 1e6;
  small.unitsPerBlock = big.unitsPerBlock = 4;
  small.blocks = 16.0 * a100.cores;
  big.sharedBytesPerBlock = 80 << 10;
  small.registersPerThread = 40;
  Counts phases[] = {big, small};
  const double apart = latency(phases, a100);
  applyWorstOccupancy(phases);
  for (const Counts &phase : phases) {
    CHECK(phase.sharedBytesPerBlock == 80 << 10);
    CHECK(phase.registersPerThread == 40);
    CHECK(residentBlocks(phase, a100) == 2 * a100.cores);
  }
  CHECK(latency(phases, a100) > apart + 0.9 * (latency(small, a100) - a100.launchSec));
}

TEST_CASE("Barriers cost what the target's table says, those of the device what is cheaper") {
  for (const Target &target : all()) {
    INFO(target.name);
    const Counts phases[] = {{}, {}, {}};
    const double between = std::min(target.ownLaunchSec, target.deviceBarrierSec);
    CHECK(latency(phases, target) == Catch::Approx(target.ownLaunchSec + 2 * between));
    Counts c;
    c.launches = 0;
    c.barriers = 5;
    const bool cpu = target.kind == TargetKind::Cpu; // a block has one core
    CHECK(latency(c, target) == Catch::Approx(cpu ? 0 : 5 * target.blockBarrierSec));
  }
}

TEST_CASE("Blocks that hardly do anything wait for memory all the same, a wave after the other") {
  const Target hopper = *lookupTarget("sm_90");
  Counts c;
  c.launches = 0;
  c.unitsPerBlock = 8;
  c.blocks = 62.0 * 8 * hopper.cores; // of which a core holds eight
  c.readBytes = 1e6;
  CHECK(latency(c, hopper) == Catch::Approx(61 * hopper.waitSec));
  c.blocks /= 4; // each with four times the work
  CHECK(latency(c, hopper) == Catch::Approx(15 * hopper.waitSec));
  c.readBytes = 0;
  CHECK(latency(c, hopper) == 0);
}

TEST_CASE("A thread's reads come a few at a time, the first ones with the launch") {
  for (const char *name : {"sm_90", "gfx90a"}) {
    INFO(name);
    const Target target = *lookupTarget(name);
    Counts c;
    c.launches = 0;
    c.unitsPerBlock = 1;
    c.reads = target.readsAtOnce;
    CHECK(latency(c, target) == 0);
    c.reads = 11 * target.readsAtOnce;
    c.readBytes = 1;
    CHECK(latency(c, target) == Catch::Approx(10 * target.waitSec / 2)); // from the last cache
    c.readBytes = 4.0 * double(target.memory[1].capacityBytes);
    c.blocks = target.cores;
    Counts none = c;
    none.reads = 0;
    CHECK(latency(c, target) >= std::max(latency(none, target), 10 * target.waitSec));
  }
}

TEST_CASE("Blocks that a core has at once hide each other's waits for tiles") {
  const Target hopper = *lookupTarget("sm_90");
  Counts c;
  c.launches = 0;
  c.unitsPerBlock = 8;
  c.fills = 10;
  c.vectorOps = 1000;
  c.blocks = hopper.cores;
  Counts none = c;
  none.fills = 0;
  const double waits = 10 * hopper.waitSec;
  CHECK(latency(c, hopper) > waits);
  CHECK(latency(none, hopper) < waits / 2);
  c.blocks *= 4; // at once
  CHECK(latency(c, hopper) < 1.2 * waits);
  c.blocks *= 4; // two waves of eight
  CHECK(latency(c, hopper) > 2 * waits);
  CHECK(latency(c, hopper) < 2.4 * waits);
}

TEST_CASE("Blocks take whole waves, and parts side by side count by their blocks") {
  const Target a100 = *lookupTarget("a100");
  Counts c;
  c.unitsPerBlock = 32;
  c.blocks = 2.0 * a100.cores; // 2048 threads a core
  CHECK(waves(c, residentBlocks(c, a100)) == 1);
  c.blocks += 1;
  CHECK(waves(c, residentBlocks(c, a100)) == 2);
  Counts many, few;
  many.blocks = 30;
  many.vectorOps = 100;
  few.blocks = 10;
  few.vectorOps = 500;
  const Counts both = sideBySide(std::array{many, few});
  CHECK(both.blocks == 40);
  CHECK(both.vectorOps == 200); // of a block, on average
}

TEST_CASE(
    "A part with nothing beside it costs what it costs alone, and twins have the counts of one") {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    Counts part = randomCounts(random);
    part.launches = 1;
    part.rowsAtOnce = 1 + round % 4;
    const Counts alone = sideBySide(std::array{part}), twins = sideBySide(std::array{part, part});
    for (auto [name, member] : kMembers) {
      INFO(name);
      CHECK(alone.*member == Catch::Approx(part.*member));
    }
    for (const Counts &sum : {alone, twins}) {
      CHECK(sum.rowsAtOnce == Catch::Approx(part.vectorLoads > 0 ? part.rowsAtOnce : 1));
      CHECK(sum.stalls == Catch::Approx(part.stalls));
    }
    CHECK(twins.blocks == 2 * part.blocks);
    for (const Target &target : all())
      CHECK(latency(alone, target) == Catch::Approx(latency(part, target)));
  }
}

TEST_CASE(
    "A CPU's cores do parts side by side in turn: one's memory hides behind no other's work") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Target target = *lookupTarget(name);
    Counts reads, computes;
    reads.blocks = computes.blocks = 64.0 * target.cores;
    reads.readBytes = reads.constantBytes = 1e9;
    computes.vectorOps = 1e6;
    const auto work = [&](const Counts &c) { return latency(c, target) - target.launchSec; };
    const std::array parts = {reads, computes};
    Counts both = sideBySide(parts);
    CHECK(work(both) == Catch::Approx(std::max(work(reads), work(computes))));
    takeTurns(both, parts, target);
    CHECK(work(both) == Catch::Approx(work(reads) + work(computes)));
    // Parts alike take as long as before, also those that copy operands closer, or have fewer blocks than cores.
    Counts stages = computes, few = computes;
    stages.stagedLoads = 1e6;
    stages.readBytes = stages.stagedBytes = 1e8;
    few.blocks = 1;
    for (const Counts &part : {reads, computes, stages}) {
      const std::array twins = {part, part};
      Counts twice = sideBySide(twins);
      takeTurns(twice, twins, target);
      CHECK(work(twice) == Catch::Approx(2 * work(part)));
    }
    const std::array two = {few, few};
    Counts beside = sideBySide(two);
    takeTurns(beside, two, target);
    CHECK(work(beside) == Catch::Approx(latency(few, target) - target.ownLaunchSec));
  }
}

TEST_CASE("A CPU's calling thread does alone what is not worth handing out") {
  const Target host = *lookupTarget("host");
  Counts c;
  c.blocks = 8;
  CHECK(latency(c, host) == Catch::Approx(host.ownLaunchSec));
  c.vectorOps = 1e6;
  const double once = latency(c, host);
  c.blocks = 16;
  CHECK(latency(c, host) - host.launchSec == Catch::Approx(2 * (once - host.launchSec)));
}

TEST_CASE("What a CPU's core copies closer first does not hide behind arithmetic") {
  const Target host = *lookupTarget("host");
  Counts c;
  c.blocks = host.cores;
  c.readBytes = 1e8;
  const double bytes = latency(c, host) - host.launchSec;
  c.vectorOps = 1e8;
  const double beside = latency(c, host) - host.launchSec;
  CHECK(beside > 2 * bytes); // arithmetic alone
  c.stagedBytes = c.readBytes;
  CHECK(latency(c, host) - host.launchSec == Catch::Approx(beside + bytes));
  c.stagedBytes /= 2; // the other half does
  CHECK(latency(c, host) - host.launchSec == Catch::Approx(beside + bytes / 2));
  c.stagedLoads = 1e8; // copies that take longer than their bytes
  Counts copies;
  copies.blocks = host.cores;
  copies.vectorLoads = c.stagedLoads;
  CHECK(latency(c, host) == Catch::Approx(beside + latency(copies, host)));
}

TEST_CASE("The quick fidelity never exceeds the other: it leaves waves and barriers out") {
  std::mt19937 random(2);
  for (const Target &target : all())
    for (int round = 0; round < 300; ++round) {
      Counts c = randomCounts(random);
      INFO(target.name);
      CHECK(delta(c, target) <= latency(c, target) * (1 + 1e-12));
    }
}

TEST_CASE("At the limits the roofline and the launch cost are left alone") {
  for (const Target &target : all()) {
    INFO(target.name);
    Counts nothing;
    CHECK(latency(nothing, target) == Catch::Approx(target.ownLaunchSec));
    nothing.launches = 7;
    CHECK(latency(nothing, target) == Catch::Approx(7 * target.ownLaunchSec));

    Counts copy; // bytes alone
    copy.readBytes = 1e12;
    copy.launches = 0;
    copy.blocks = target.cores;
    copy.rowsAtOnce = 4;
    CHECK(latency(copy, target) == Catch::Approx(1e12 / target.memory.back().bytesPerSec));

    // Every core busy with nothing but multiply-adds: the device's peak. A vector operation is one of them a lane.
    Counts peak;
    peak.launches = 0;
    peak.blocks = target.cores;
    peak.unitsPerBlock = target.unitsToFill;
    peak.vectorOps = 1e9;
    double device = target.flopsPerSec * (target.kind == TargetKind::Cpu ? target.cores : 1);
    double flops = 2.0 * target.lanes * peak.vectorOps * peak.blocks * peak.unitsPerBlock;
    CHECK(latency(peak, target) == Catch::Approx(flops / device));
    // One block more is a second wave.
    peak.blocks += 1;
    CHECK(latency(peak, target) == Catch::Approx(2 * flops / device));
  }
}

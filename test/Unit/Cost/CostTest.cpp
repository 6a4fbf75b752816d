// Properties of the cost model on every target: what must not get cheaper, and where its limits lie.
#include "Cost/Cost.h"

#include <catch2/catch_all.hpp>

#include <cmath>
#include <random>

using namespace fusec;
using namespace fusec::cost;

namespace {

using Member = double Counts::*;
constexpr std::pair<const char *, Member> kMembers[] = {
    {"vectorOps", &Counts::vectorOps},
    {"vectorLoads", &Counts::vectorLoads},
    {"gathers", &Counts::gathers},
    {"readBytes", &Counts::readBytes},
    {"writtenBytes", &Counts::writtenBytes},
    {"innerBytes", &Counts::innerBytes},
    {"barriers", &Counts::barriers},
    {"blocks", &Counts::blocks},
    {"unitsPerBlock", &Counts::unitsPerBlock},
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
  c.gathers = number(1e4);
  c.readBytes = number(1e9);
  c.writtenBytes = number(1e9);
  c.innerBytes = number(1e7);
  c.barriers = number(100);
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
        if (member == &Counts::blocks) // the same bytes go faster to more blocks
          fewer.readBytes = fewer.writtenBytes = 0;
        Counts more = fewer;
        more.*member = more.*member * 2 + 1;
        INFO(target.name << " " << name << " " << less.*member);
        CHECK(latency(more, target) >= latency(fewer, target) * (1 - 1e-12));
        CHECK(delta(more, target) >= delta(fewer, target) * (1 - 1e-12));
      }
    }
}

TEST_CASE("A core draws its share of the bandwidth and no more") {
  for (const Target &target : all()) {
    INFO(target.name);
    Counts c;
    c.readBytes = 1e9;
    double alone = latency(c, target) - target.launchSec;
    c.blocks = target.cores;
    CHECK(latency(c, target) - target.launchSec == Catch::Approx(alone / target.cores));
    c.blocks = 2.0 * target.cores;
    CHECK(latency(c, target) - target.launchSec == Catch::Approx(alone / target.cores));
  }
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
    CHECK(latency(nothing, target) == Catch::Approx(target.launchSec));
    nothing.launches = 7;
    CHECK(latency(nothing, target) == Catch::Approx(7 * target.launchSec));

    Counts copy; // bytes alone
    copy.readBytes = 1e12;
    copy.launches = 0;
    copy.blocks = target.cores;
    CHECK(latency(copy, target) == Catch::Approx(1e12 / target.memory.back().bytesPerSec));

    // Every core busy with nothing but multiply-adds: the device's peak. A vector operation is one of them a lane.
    Counts peak;
    peak.launches = 0;
    peak.blocks = target.cores;
    peak.unitsPerBlock = target.kind == TargetKind::Cpu ? 1 : 16; // that hide each other's latency
    peak.vectorOps = 1e9;
    double device = target.flopsPerSec * (target.kind == TargetKind::Cpu ? target.cores : 1);
    double flops = 2.0 * target.lanes * peak.vectorOps * peak.blocks * peak.unitsPerBlock;
    CHECK(latency(peak, target) == Catch::Approx(flops / device));
    // One block more is a second wave.
    peak.blocks += 1;
    CHECK(latency(peak, target) == Catch::Approx(2 * flops / device));
  }
}

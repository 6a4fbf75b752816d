// Kernels of several phases: their schedules are right, and those that could deadlock or read too early are refused.
#include "Tiling/Phases.h"
#include "Candidates.h"

#include <algorithm>
#include <catch2/catch_approx.hpp>

using namespace fusec;
using namespace fusec::test;
using tiling::Candidates;

namespace {

/// A squeeze-and-excitation block: means of the channels, two small products, a gate for all elements.
const std::string kGate = R"(expr gate
tensor %x: f32[40,30] input
tensor %w: f32[40,7] input
tensor %v: f32[7,40] input
tensor %m: f32[40] temp
tensor %h: f32[7] temp
tensor %g: f32[40] temp
tensor %y: f32[40,30] output
inputs (%x, %w, %v)
outputs (%y)
reduction r0 [c:40; p:30] sum f32
  %m = %x[c, p]
reduction r1 [j:7; c:40] sum f32
  %h = mul(%m[c], %w[c, j])
reduction r2 [c:40; j:7] sum f32
  %g = mul(max(%h[j], 0.0), %v[j, c])
map m0 [c:40, p:30]
  %y = mul(%x[c, p], %g[c])
)";
const std::vector<int> kStarts = {1, 2, 3};

Schedule phasedSchedule(const ExprProgram &pattern, const std::string &target) {
  Candidates candidates = tiling::phasedCandidates(pattern, targetNamed(target), kStarts);
  REQUIRE(!candidates.empty());
  return candidates[0];
}

std::string problemsOf(const Schedule &schedule, const ExprProgram &pattern) {
  Status status = verify(schedule, pattern);
  REQUIRE(!status.ok());
  std::string all;
  for (const Diagnostic &d : status.errors())
    all += format(d) + "\n";
  return all;
}

} // namespace

TEST_CASE("phases: every schedule gives the numbers of the equations") {
  const ExprProgram pattern = patternFrom(kGate);
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sim:sm_90", "sim:gfx90a"}) {
    const Target target = targetNamed(name);
    Candidates candidates = tiling::phasedCandidates(pattern, target, kStarts);
    CHECK(!candidates.empty());
    for (const Schedule &schedule : candidates) {
      const std::string text = print(schedule, pattern);
      INFO(name << "\n" << text);
      TextReader in(text, "schedule");
      CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
      CHECK(tiling::phaseStarts(schedule) == kStarts);
      CHECK(kernelOf(pattern, schedule).kernel.phases.size() == 4);
      CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, 0) == "");
    }
  }
}

TEST_CASE(
    "phases: each is counted by itself, and a barrier stands for a launch where it costs less") {
  const ExprProgram pattern = patternFrom(kGate);
  for (const char *name : {"sm_80", "gfx90a"}) {
    const Target target = targetNamed(name);
    const std::vector<ScheduleVariant> variants = valueOf(bestSchedules(pattern, target, kStarts));
    const std::vector<cost::Counts> phases = countWork(variants.back().schedule, pattern, target);
    REQUIRE(phases.size() == 4);
    double apart = 0;
    for (const cost::Counts &phase : phases)
      apart += cost::latency(phase, target);
    const double saved =
        cost::joinsPhases(target) ? 3 * (target.launchSec - target.deviceBarrierSec) : 0;
    CHECK(variants.back().seconds == Catch::Approx(apart - saved));
    // The means come back from memory in the second phase, and x in the last one again.
    CHECK(phases[0].readBytes == 40 * 30 * 4);
    CHECK(phases[0].writtenBytes == 40 * 4);
    CHECK(phases[1].readBytes == (40 + 40 * 7) * 4);
    CHECK(phases[3].readBytes == (40 * 30 + 40) * 4);
  }
}

TEST_CASE("phases: a barrier that not every block passes once is refused") {
  const ExprProgram pattern = patternFrom(kGate);
  Schedule schedule = phasedSchedule(pattern, "sim:sm_90");
  require(verify(schedule, pattern));
  auto barrier = std::find_if(schedule.tree.begin(), schedule.tree.end(),
                              [](const TreeNode &n) { return n.isBarrier(); });
  REQUIRE(barrier != schedule.tree.begin());
  TreeNode moved = *barrier;
  (barrier - 1)->children.push_back(moved);
  CHECK(problemsOf(schedule, pattern).find("barriers stand at the root") != std::string::npos);
}

TEST_CASE("phases: a value read before the barrier behind its producer is refused") {
  const ExprProgram pattern = patternFrom(kGate);
  const Schedule good = phasedSchedule(pattern, "sim:sm_90");
  std::vector<size_t> barriers;
  for (size_t i = 0; i < good.tree.size(); ++i)
    if (good.tree[i].isBarrier())
      barriers.push_back(i);
  REQUIRE(barriers.size() == 3);

  SECTION("the reader's phase comes first") {
    Schedule schedule = good;
    const auto begin = schedule.tree.begin(), barrier = begin + static_cast<long>(barriers[0]);
    std::rotate(begin, barrier + 1, begin + static_cast<long>(barriers[1])); // e1, e0, barrier
    std::rotate(begin + static_cast<long>(barriers[1] - barriers[0] - 1),
                begin + static_cast<long>(barriers[1]) - 1,
                begin + static_cast<long>(barriers[1])); // e1, barrier, e0
    CHECK(problemsOf(schedule, pattern).find("reads what e0 makes behind the barrier after it") !=
          std::string::npos);
  }
  SECTION("no barrier") {
    // Both would run in one phase, whose blocks are in no order.
    Schedule schedule = good;
    schedule.tree.erase(schedule.tree.begin() + static_cast<long>(barriers[0]));
    CHECK(problemsOf(schedule, pattern)
              .find("parts side by side do not read each other's values; e1 reads that of e0") !=
          std::string::npos);
  }
  SECTION("a value in a block's own memory") {
    Schedule schedule = good;
    schedule.edges.push_back(
        {std::get<Equation>(pattern.items[0].value).outputs[0], MemLevel::Shared});
    CHECK(problemsOf(schedule, pattern)
              .find("reads what e0 makes across a barrier, from device "
                    "memory") != std::string::npos);
  }
}

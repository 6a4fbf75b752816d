// Kernels of several phases: their schedules are right, and those that could deadlock or read too early are refused.
#include "Tiling/schedule/Phases.h"
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/search/PhaseCandidates.h"
#include "Tiling/verify/Verify.h"

#include <algorithm>
#include <catch2/catch_approx.hpp>

using namespace fusec;
using namespace fusec::test;
using tiling::PricedSchedules;

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

/// With a barrier at each border.
Schedule phasedSchedule(const ExprProgram &pattern, const std::string &target) {
  PricedSchedules candidates =
      valueOf(tiling::phasedCandidates(pattern, targetNamed(target), kStarts));
  REQUIRE(!candidates.empty());
  for (TreeNode &node : candidates[0].schedule.tree)
    if (node.isBorder())
      node.leaf()->kind = LeafKind::Barrier;
  return candidates[0].schedule;
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

/// Every candidate with these phases prints and parses to itself, has a phase more than starts at least, takes what its
/// phases take and gives the numbers of the equations. Returns how many of them have an alternative in a phase.
int checkPhases(const ExprProgram &pattern, const std::vector<int> &starts, double tolerance) {
  int rewritten = 0;
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sim:sm_90", "sim:gfx90a"}) {
    const Target target = targetNamed(name);
    PricedSchedules candidates = valueOf(tiling::phasedCandidates(pattern, target, starts));
    CHECK(!candidates.empty());
    for (const auto &[schedule, phases, seconds, isTree] : candidates) {
      const std::string text = print(schedule, pattern);
      INFO(name << "\n" << text);
      TextReader in(text, "schedule");
      CHECK(print(valueOf(parseSchedule(in, pattern)), pattern) == text);
      CHECK(tiling::phaseStarts(schedule).size() >= starts.size());
      CHECK(kernelOf(pattern, schedule).kernel.phases.size() ==
            tiling::phaseStarts(schedule).size() + 1);
      const std::vector<cost::Counts> counted = countWork({schedule, pattern}, target);
      CHECK(counted.size() == phases.size());
      CHECK(cost::latency(counted, target) == Catch::Approx(seconds));
      CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, tolerance) == "");
      rewritten += !schedule.via.empty();
    }
  }
  return rewritten;
}

TEST_CASE("phases: every schedule gives the numbers of the equations") {
  const ExprProgram pattern = patternFrom(kGate);
  CHECK(checkPhases(pattern, kStarts, 0) == 0);
  CHECK(tiling::phaseStarts(phasedSchedule(pattern, "sim:sm_90")) == kStarts);
}

TEST_CASE("phases: each takes the alternatives of its own equations") {
  // Weights that are divided by their sum, used after a barrier; the phase before and the one behind stay as they are.
  ExprProgram pattern = patternFrom(R"(expr weighted
tensor %x: f32[96,64] input
tensor %l: f32[96] temp
tensor %p: f32[96,64] temp
tensor %o: f32[96] temp
tensor %y: f32[64] output
inputs (%x)
outputs (%y)
reduction l [i:96; k:64] sum f32
  %l = mul(%x[i, k], %x[i, k])
map p [i:96, k:64]
  %p = div(%x[i, k], add(%l[floormod(i + 1, 96)], 1.0))
reduction o [i:96; k:64] sum f32
  %o = %p[i, k]
reduction y [j:64; i:96] sum f32
  %y = mul(%o[i], %x[i, j])
)");
  CHECK(checkPhases(pattern, {1, 3}, 1e-5) > 0);
}

TEST_CASE("phases: long reductions with few results run in parts on many blocks, then in few") {
  const std::string kLong = R"(expr long
tensor %x: f32[4,262144] input
tensor %y: f32[4] output
inputs (%x)
outputs (%y)
reduction y [i:4; k:262144] sum f32
  %y = %x[i, k]
)";
  const ExprProgram pattern = patternFrom(kLong);
  for (const char *name : {"sm_80", "gfx90a"}) {
    const Target target = targetNamed(name);
    const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
    INFO(print(best.schedule, pattern));
    REQUIRE(best.schedule.via.size() == 1);
    CHECK(best.schedule.via[0].alternative == "two-phase");
    CHECK(tiling::phaseStarts(best.schedule) == std::vector<int>{1});
    const std::vector<cost::Counts> phases = countWork({best.schedule, pattern}, target);
    REQUIRE(phases.size() == 2);
    CHECK(phases[0].blocks >= target.cores / 2);
    double onePhase = 1;
    for (const search::Evaluation &e : best.considered)
      if (e.name.find("via") == std::string::npos)
        onePhase = std::min(onePhase, e.score);
    CHECK(best.seconds < onePhase);
  }
}

TEST_CASE("phases: parts and their results take turns, and give the same numbers") {
  // A softmax over one long row, and the place of another one's largest number.
  const ExprProgram pattern = patternFrom(R"(expr softmax
tensor %x: f32[20000] input
tensor %z: f32[20001] input
tensor %m: f32[] temp
tensor %e: f32[20000] temp
tensor %s: f32[] temp
tensor %y: f32[20000] output
tensor %v: f32[] output
tensor %at: i64[] output
inputs (%x, %z)
outputs (%y, %v, %at)
reduction m [; k:20000] max f32
  %m = %x[k]
map e [i:20000]
  %e = exp(sub(%x[i], %m[]))
reduction s [; k:20000] sum f32
  %s = %e[k]
map y [i:20000]
  %y = div(%e[i], %s[])
reduction at [; k:20001] argmax f32
  %v = %z[k]
  %at = k
)");
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
  for (const char *name : {"x86-64-v3", "sim:sm_90", "sim:gfx90a"}) {
    int phased = 0, repaired = 0;
    for (const auto &[schedule, counts, seconds, isTree] :
         valueOf(tiling::pricedCandidates(pattern, targetNamed(name)))) {
      if (counts.size() == 1)
        continue;
      const std::string text = print(schedule, pattern);
      INFO(name << "\n" << text);
      // Parts of the maximum and of the other row's, their results, parts of the sum, the sum, the quotients. As one
      // reduction maximum and sum have one phase of parts.
      const bool cascade = schedule.via.front().alternative == "repair-cascades";
      ++(cascade ? repaired : phased);
      CHECK(tiling::phaseStarts(schedule) ==
            (cascade ? std::vector<int>{2, 4} : std::vector<int>{2, 4, 5, 6}));
      CHECK(difference(runSchedule(pattern, schedule, inputs, {}), expected, 1e-5) == "");
    }
    CHECK(phased > 0);
    CHECK(repaired > 0);
  }
}

TEST_CASE("phases: each is counted by itself, and a barrier or counters stand for a launch where "
          "they cost less") {
  const ExprProgram pattern = patternFrom(kGate);
  for (const char *name : {"sm_80", "gfx90a"}) {
    const Target target = targetNamed(name);
    const std::vector<ScheduleVariant> variants = valueOf(bestSchedules(pattern, target, kStarts));
    const std::vector<cost::Counts> phases = countWork({variants.back().schedule, pattern}, target);
    REQUIRE(phases.size() == 4);
    double apart = 0;
    for (const cost::Counts &phase : phases)
      apart += cost::latency(phase, target);
    // Few blocks: none raises a counter, or waits, behind another one. In the end they count themselves.
    const double counter = target.signalSec + target.awaitSec;
    const double borders = std::min(3 * target.deviceBarrierSec, 4 * counter);
    const double saved = cost::joinsPhases(target) ? 3 * target.launchSec - borders : 0;
    CHECK(variants.back().seconds == Catch::Approx(apart - saved));
    CHECK(phases[3].waits ==
          (cost::joinsPhases(target) && 4 * counter < 3 * target.deviceBarrierSec));
    // The means come back from memory in the second phase, and x in the last one again, unless threads hold it.
    CHECK(phases[0].readBytes == 40 * 30 * 4);
    CHECK(phases[0].writtenBytes == 40 * 4);
    CHECK(phases[1].readBytes == (40 + 40 * 7) * 4);
    CHECK(phases[3].readBytes == ((cost::joinsPhases(target) ? 0 : 40 * 30) + 40) * 4);
  }
}

TEST_CASE("phases: a barrier that not every block passes once is refused") {
  const ExprProgram pattern = patternFrom(kGate);
  Schedule schedule = phasedSchedule(pattern, "sim:sm_90");
  require(verify(schedule, pattern));
  auto barrier = std::find_if(schedule.tree.begin(), schedule.tree.end(),
                              [](const TreeNode &n) { return n.leaf(LeafKind::Barrier); });
  REQUIRE(barrier != schedule.tree.begin());
  TreeNode moved = *barrier;
  (barrier - 1)->loop()->children.push_back(moved);
  CHECK(problemsOf(schedule, pattern)
            .find("barrier stands at the root or in the step loop there, given inside block ") !=
        std::string::npos);
}

TEST_CASE("phases: a value read before the barrier behind its producer is refused") {
  const ExprProgram pattern = patternFrom(kGate);
  const Schedule good = phasedSchedule(pattern, "sim:sm_90");
  std::vector<size_t> barriers;
  for (size_t i = 0; i < good.tree.size(); ++i)
    if (good.tree[i].leaf(LeafKind::Barrier))
      barriers.push_back(i);
  REQUIRE(barriers.size() == 3);

  SECTION("the reader's phase comes first") {
    Schedule schedule = good;
    const auto begin = schedule.tree.begin(), barrier = begin + static_cast<long>(barriers[0]);
    std::rotate(begin, barrier + 1, begin + static_cast<long>(barriers[1])); // e1, e0, barrier
    std::rotate(begin + static_cast<long>(barriers[1] - barriers[0] - 1),
                begin + static_cast<long>(barriers[1]) - 1,
                begin + static_cast<long>(barriers[1])); // e1, barrier, e0
    CHECK(problemsOf(schedule, pattern)
              .find("in a phase behind that of e0, which makes it, given phase 1 before phase 2") !=
          std::string::npos);
  }
  SECTION("no barrier") {
    // Both would run in one phase, whose blocks are in no order.
    Schedule schedule = good;
    schedule.tree.erase(schedule.tree.begin() + static_cast<long>(barriers[0]));
    CHECK(problemsOf(schedule, pattern)
              .find("parts side by side do not read each other's values, given e1, which reads ") !=
          std::string::npos);
  }
  SECTION("a value in a block's own memory") {
    Schedule schedule = good;
    schedule.edges.push_back(
        {std::get<Equation>(pattern.items[0].value).outputs[0], MemLevel::Shared});
    CHECK(problemsOf(schedule, pattern)
              .find("is global, since it crosses a barrier from e0 to e1, given shared") !=
          std::string::npos);
  }
}

TEST_CASE("phases: a block that reads what another one makes in its phase is refused") {
  auto rows = [](const std::string &row) {
    return patternFrom(R"(expr rows
symbol n = 1..300 opt 1 divisor 1
tensor %x: f32[n,50] input
tensor %s: f32[n] temp
tensor %y: f32[n,50] output
inputs (%x)
outputs (%y)
reduction s [i:n; k:50] sum f32
  %s = %x[i, k]
map y [i:n, j:50]
  %y = div(%x[i, j], %s[)" +
                       row + "])\n");
  };
  const ExprProgram own = rows("i"), other = rows("dim(n - 1) + i*-1");
  for (const char *name : {"x86-64-v3", "sim:sm_90"})
    for (const auto &[schedule, phases, seconds, isTree] :
         valueOf(tiling::pricedCandidates(own, targetNamed(name)))) {
      if (!schedule.via.empty())
        continue;
      INFO(print(schedule, own));
      require(verify(schedule, own));
      CHECK(problemsOf(schedule, other)
                .find("of e0 a block reads in the same phase only what it makes itself, given e1, "
                      "which reads what other blocks make along block m:") != std::string::npos);
    }
}

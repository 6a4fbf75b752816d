// Levels of values are searched upwards from the lowest ones: what first finds room is not what a block holds best.
#include "Tiling/search/LevelSearch.h"
#include "Candidates.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/schedule/Schedule.h"
#include "Tiling/verify/Verify.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Two values of a row that later nests read: e of 1 KB, made first, and t of 2 KB.
const std::string kTwoValues = R"(expr p
symbol n = 1..100000 opt 65536 divisor 1
tensor %x: f32[n,256] input
tensor %z: f32[n,512] input
tensor %e: f32[n,256] temp
tensor %s: f32[n] temp
tensor %t: f32[n,512] temp
tensor %q: f32[n] temp
tensor %y: f32[n,256] output
tensor %w: f32[n,512] output
inputs (%x, %z)
outputs (%y, %w)
map e [i:n, j:256]
  %e = exp(%x[i, j])
reduction s [i:n; k:256] sum f32
  %s = %e[i, k]
map t [i:n, l:512]
  %t = exp(div(%z[i, l], %s[i]))
reduction q [i:n; k:512] sum f32
  %q = %t[i, k]
map y [i:n, j:256]
  %y = mul(%e[i, j], %q[i])
map w [i:n, l:512]
  %w = div(%t[i, l], %q[i])
)";

/// A row of 40 KB, more than half of a CU's memory, whose elements take long to compute.
std::string longRows() {
  std::string value = "%x[i, j]";
  for (int i = 0; i < 12; ++i)
    value = "tanh(" + value + ")";
  return R"(expr p
symbol n = 1..100000 opt 312 divisor 1
tensor %x: f32[n,10000] input
tensor %e: f32[n,10000] temp
tensor %s: f32[n] temp
tensor %y: f32[n,10000] output
inputs (%x)
outputs (%y)
map e [i:n, j:10000]
  %e = )" +
         value + R"(
reduction s [i:n; k:10000] sum f32
  %s = %e[i, k]
map y [i:n, j:10000]
  %y = mul(%e[i, j], %s[i])
)";
}

/// Steps with a state of 1 KB and two values, which are read again and again: a of 1 KB, and b of 2 KB.
const std::string kSteps = R"(expr steps
tensor %x: f32[20,256] input
tensor %w: f32[512,256] input
tensor %q: f32[256,512] input
tensor %zero: f32[256] input
tensor %h: f32[256] temp
tensor %a: f32[256] temp
tensor %b: f32[512] temp
tensor %h.next: f32[256] temp
tensor %last: f32[256] output
inputs (%x, %w, %q, %zero)
outputs (%last)
scan last steps(20)
  carry %h = %zero next %h.next final %last
  map a [j:256]
    %a = mul(0.125, add(%h[j], %x[step, j]))
  reduction b [j:512; k:256] sum f32
    %b = mul(%a[k], %w[j, k])
  reduction h.next [i:256; k:512] sum f32
    %h.next = mul(0.001953125, mul(%b[k], %q[i, k]))
end
)";

std::vector<Schedule> named(const std::string &name, const ExprProgram &pattern,
                            const Target &target) {
  std::vector<Schedule> found;
  for (Schedule &schedule : valueOf(candidateSchedules(pattern, target)))
    if (schedule.name == name && schedule.via.empty())
      found.push_back(std::move(schedule));
  return found;
}

} // namespace

TEST_CASE("of two values that a core has no room for together the larger one stays") {
  const ExprProgram pattern = patternFrom(kTwoValues);
  const TensorId e = 2, t = 4;
  Target target = targetNamed("x86-64-v3");
  target.sharedBytesPerBlock = 2560;
  const std::vector<Schedule> first = named("stitch", pattern, target),
                              raised = named("stitch-raised", pattern, target);
  REQUIRE(!first.empty());
  REQUIRE(raised.size() == 1);
  for (const Schedule &schedule : first) {
    CHECK(tiling::levelOf(schedule, e) == MemLevel::Shared);
    CHECK(tiling::levelOf(schedule, t) == MemLevel::Global);
    CHECK(predict({raised[0], pattern}, target).seconds <
          predict({schedule, pattern}, target).seconds);
  }
  CHECK(tiling::levelOf(raised[0], e) == MemLevel::Global);
  CHECK(tiling::levelOf(raised[0], t) == MemLevel::Shared);
  CHECK(tiling::storageOf({raised[0], pattern}).sharedBytes <= double(target.sharedBytesPerBlock));
  require(verify(raised[0], pattern, target));
  const std::vector<TensorValue> inputs = randomInputs(pattern, {5});
  CHECK(difference(runSchedule(pattern, raised[0], inputs, {5}), valueOf(evaluate(pattern, inputs)),
                   1e-5) == "");
}

TEST_CASE("where all values have room no level is raised") {
  const ExprProgram pattern = patternFrom(kTwoValues);
  for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"}) {
    INFO(name);
    CHECK(named("stitch-raised", pattern, targetNamed(name)).empty());
    CHECK(named("stitch-units-raised", pattern, targetNamed(name)).empty());
  }
}

TEST_CASE("what nobody reads, as an index that is 0 where a size is 1, has no place in a block") {
  const ExprProgram pattern = patternFrom(
      "expr p\ntensor %x: f32[4096,64] input\ntensor %u: f32[4096,64] temp\n"
      "tensor %s: f32[4096] temp\ntensor %y: f32[4096,64] output\ninputs (%x)\noutputs (%y)\n"
      "map u [i:4096, j:64]\n  %u = exp(%x[i, j])\n"
      "reduction s [i:4096; k:64] sum f32\n  %s = %x[i, k]\n"
      "map y [i:4096, j:64]\n  %y = mul(%x[i, j], %s[i])\n");
  for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"}) {
    INFO(name);
    for (const ScheduleVariant &variant : valueOf(bestSchedules(pattern, targetNamed(name))))
      for (const EdgeLevel &edge : variant.schedule.edges)
        CHECK(pattern.tensors[static_cast<size_t>(edge.tensor)].name != "u");
  }
}

TEST_CASE("on a GPU a value that leaves room for one block alone is raised") {
  const ExprProgram pattern = patternFrom(longRows());
  const TensorId e = 1;
  const Target target = targetNamed("gfx90a");
  const std::vector<Schedule> first = named("stitch", pattern, target),
                              raised = named("stitch-raised", pattern, target);
  REQUIRE(!first.empty());
  REQUIRE(!raised.empty());
  CHECK(valueOf(bestSchedules(pattern, target)).back().schedule.name == "stitch-raised");
  for (const Schedule &schedule : raised) {
    CHECK(tiling::levelOf(schedule, e) == MemLevel::Global);
    const double seconds = predict({schedule, pattern}, target).seconds;
    for (const Schedule &other : first)
      if (other.units == schedule.units) {
        CHECK(tiling::levelOf(other, e) == MemLevel::Shared);
        CHECK(seconds < predict({other, pattern}, target).seconds);
      }
    require(verify(schedule, pattern, target));
    const std::vector<TensorValue> inputs = randomInputs(pattern, {2});
    CHECK(difference(runSchedule(pattern, schedule, inputs, {2}),
                     valueOf(evaluate(pattern, inputs)), 1e-5) == "");
  }
}

TEST_CASE("of a scan's values those that are read most stay with its block") {
  const ExprProgram pattern = patternFrom(kSteps);
  const TensorId h = 4, a = 5, b = 6;
  Target target = targetNamed("sim:sm_90");
  target.sharedBytesPerBlock = 3584;
  const std::vector<Schedule> first = named("scan", pattern, target),
                              raised = named("scan-raised", pattern, target);
  REQUIRE(!first.empty());
  REQUIRE(!raised.empty());
  for (const Schedule &schedule : first) {
    CHECK(tiling::levelOf(schedule, h) == MemLevel::Shared);
    CHECK(tiling::levelOf(schedule, b) == MemLevel::Global);
  }
  const std::vector<TensorValue> inputs = randomInputs(pattern, {});
  for (const Schedule &schedule : raised) {
    CHECK(tiling::levelOf(schedule, h) == MemLevel::Global);
    CHECK(tiling::levelOf(schedule, a) == MemLevel::Shared);
    CHECK(tiling::levelOf(schedule, b) == MemLevel::Shared);
    CHECK(tiling::storageOf({schedule, pattern}).sharedBytes <= double(target.sharedBytesPerBlock));
    for (const Schedule &other : first)
      if (other.units == schedule.units)
        CHECK(predict({schedule, pattern}, target).seconds <
              predict({other, pattern}, target).seconds);
    require(verify(schedule, pattern, target));
    CHECK(difference(runSchedule(pattern, schedule, inputs, {}), valueOf(evaluate(pattern, inputs)),
                     1e-5) == "");
  }
}

TEST_CASE("a value that every block makes for itself is not raised to where they would all write") {
  std::string value = "%x[j]";
  for (int i = 0; i < 12; ++i)
    value = "tanh(" + value + ")";
  const ExprProgram pattern = patternFrom(R"(expr p
symbol n = 1..100000 opt 312 divisor 1
tensor %x: f32[10240] input
tensor %z: f32[n,10240] input
tensor %e: f32[10240] temp
tensor %s: f32[n] temp
tensor %y: f32[n,10240] output
inputs (%x, %z)
outputs (%y)
map e [j:10240]
  %e = )" + value + R"(
reduction s [i:n; k:10240] sum f32
  %s = mul(%e[k], %z[i, k])
map y [i:n, j:10240]
  %y = mul(%e[j], %s[i])
)");
  const std::string text = R"(schedule s units 8 lanes 64 {
  axis m spatial (0) of e1, e2
  axis c spatial (0) of e0
  axis k reduction (1) of e1
  axis j spatial (1) of e2
  edge e shared
  edge s register
  tree { block m:1 {
    seq c:512 { unit c:64 { lane c:1 { compute e0 } } }
    init e1 seq k:512 { unit k:64 { lane k:1 { compute e1 } } } combine e1
    seq j:512 { unit j:64 { lane j:1 { compute e2 } } } } }
}
)";
  TextReader in(text, "schedule");
  const Schedule schedule = valueOf(parseSchedule(in, pattern));
  const Target target = targetNamed("gfx90a");
  require(verify(schedule, pattern, target));
  const tiling::ScheduledProgram program(pattern);
  WorkMeter meter(program, target);
  const std::vector<cost::Counts> phases = meter.phases(schedule);
  const double seconds = cost::latency(phases, target);
  Schedule raised = schedule;
  tiling::setLevel(raised, 2, MemLevel::Global);
  REQUIRE(cost::latency(meter.phases(raised), target) <
          seconds); // it leaves room for further blocks
  CHECK(!verify(raised, pattern, target).ok());
  CHECK(!tiling::withFasterLevels({schedule, phases, seconds}, target, meter));
}

TEST_CASE("rows as long as an input says stay where there is room for any of them") {
  const ExprProgram pattern = patternFrom(R"(expr p
symbol n = 1..100000 opt 4096 divisor 1
symbol m = 1..100000000 opt 64 divisor 1
tensor %x: f32[n,m] input
tensor %e: f32[n,m] temp
tensor %s: f32[n] temp
tensor %y: f32[n,m] output
inputs (%x)
outputs (%y)
map e [i:n, j:m]
  %e = exp(%x[i, j])
reduction s [i:n; k:m] sum f32
  %s = %e[i, k]
map y [i:n, j:m]
  %y = div(%e[i, j], %s[i])
)");
  // A GPU would be faster with the rows that the opt value stands for in its blocks' memory.
  for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"})
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, targetNamed(name)))) {
      INFO(name << "\n" << print(schedule, pattern));
      CHECK((!schedule.via.empty() || tiling::levelOf(schedule, 1) == MemLevel::Global));
    }
}

TEST_CASE("what crosses a barrier of a scan's rounds stays in device memory") {
  const ExprProgram pattern = patternFrom(kSteps);
  for (const char *name : {"x86-64-v3", "sm_80", "sm_90", "gfx90a"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, target))) {
      INFO(name << "\n" << print(schedule, pattern));
      require(verify(schedule, pattern, target));
      any = any || tiling::hasGridScan(schedule);
    }
    CHECK(any);
  }
}

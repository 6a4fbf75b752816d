// Levels of values are searched upwards from the lowest ones: what first finds room is not what a block holds best.
#include "Candidates.h"
#include "Tiling/BlockStorage.h"
#include "Tiling/LiveReads.h"

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
    CHECK(predict(raised[0], pattern, target).seconds < predict(schedule, pattern, target).seconds);
  }
  CHECK(tiling::levelOf(raised[0], e) == MemLevel::Global);
  CHECK(tiling::levelOf(raised[0], t) == MemLevel::Shared);
  CHECK(tiling::storageOf(raised[0], pattern).sharedBytes <= double(target.sharedBytesPerBlock));
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

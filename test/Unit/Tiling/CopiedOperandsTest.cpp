// Operands whose lanes lie apart: gathered where they are, or copied in front into another order, as the model of costs
// finds cheaper.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/Prediction.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

/// A maximum over 3 x 3 windows of an image [n, y, x, c], padded, as [n, c, y, x].
std::string pool(int64_t extent, int64_t channels) {
  const std::string e = std::to_string(extent), c = std::to_string(channels);
  return "expr p\ntensor %x: f32[1," + e + "," + e + "," + c + "] input\ntensor %y: f32[1," + c +
         "," + e + "," + e + "] output\ninputs (%x)\noutputs (%y)\nreduction y [n:1, c:" + c +
         ", i:" + e + ", j:" + e +
         "; r:3, s:3] max f32\n  %y = if(and(and(le(1, i + r), lt(i + r, " + e +
         " + 1)), and(le(1, j + s), lt(j + s, " + e +
         " + 1))), %x[n, i + r - 1, j + s - 1, c], -100.0)\n";
}

/// A depthwise convolution of 7 x 7 over an image [n, c, y, x], as [n, y, x, c].
ExprProgram depthwise(int64_t extent, int64_t channels) {
  const std::string e = std::to_string(extent), c = std::to_string(channels),
                    in = std::to_string(extent + 6);
  ExprProgram pattern =
      patternFrom("expr p\ntensor %x: f32[1," + c + "," + in + "," + in +
                  "] input\ntensor %w: f32[" + c + ",7,7] input\ntensor %y: f32[1," + e + "," + e +
                  "," + c + "] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [n:1, i:" + e +
                  ", j:" + e + ", c:" + c + "; r:7, s:7] sum f32\n  %y = mul(if(and(lt(i + r, " +
                  in + "), lt(j + s, " + in + ")), %x[n, c, i + r, j + s], 0.0), %w[c, r, s])\n");
  fix(pattern, "w");
  return pattern;
}

bool copies(const Schedule &schedule) {
  return std::any_of(schedule.via.begin(), schedule.via.end(),
                     [](const Rewrite &rewrite) { return rewrite.alternative == "copy-operands"; });
}

} // namespace

TEST_CASE("copied operands: all candidates give the right numbers") {
  check(pool(9, 21));
  ExprProgram pattern = depthwise(5, 19);
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
}

TEST_CASE("copied operands: a CPU copies what windows would gather, and not what they use once") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Target target = targetNamed(name);
    for (const ExprProgram &pattern : {depthwise(28, 96), depthwise(14, 64)}) {
      const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
      CHECK(copies(best.schedule));
      // Both forms are weighed, and the gathering one is dearer.
      CHECK(std::any_of(best.considered.begin(), best.considered.end(), [](const auto &candidate) {
        return candidate.name.find("copy-operands") == std::string::npos;
      }));
      for (const Schedule &candidate : valueOf(candidateSchedules(pattern, target))) {
        double gathers = 0;
        for (const cost::Counts &phase : countWork({candidate, pattern}, target))
          gathers += phase.gathers;
        if (copies(candidate))
          continue;
        CHECK((gathers > 0));
        CHECK(predict({candidate, pattern}, target).seconds > best.seconds);
      }
    }
  }
}

TEST_CASE("copied operands: lanes go along what lies side by side, and leave columns") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"})
    for (const int64_t extent : {56, 28, 13}) {
      INFO(name << ' ' << extent);
      const Target target = targetNamed(name);
      const ExprProgram pattern = patternFrom(pool(extent, 64));
      const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
      // On AVX2, with half the registers to turn in, a copy whose rows the windows then go along is priced lower.
      CHECK(best.schedule.name == (std::string(name) == "x86-64-v3" ? "phases" : "turned"));
      for (const cost::Counts &phase : countWork({best.schedule, pattern}, target))
        CHECK(phase.gathers == 0);
    }
}

TEST_CASE("copied operands: lanes that lie apart in a block's own buffer gather from there") {
  const ExprProgram pattern = depthwise(28, 96);
  const Target target = targetNamed("x86-64-v4");
  bool staged = false;
  for (const Schedule &candidate : valueOf(candidateSchedules(pattern, target))) {
    const std::vector<cost::Counts> phases = countWork({candidate, pattern}, target);
    if (copies(candidate) || phases.front().stagedLoads == 0)
      continue;
    staged = true;
    // Each of the terms that a vector has, lane by lane.
    CHECK(phases.front().gathers * phases.front().blocks >= 28.0 * 28 * 96 * 49);
  }
  CHECK(staged);
}

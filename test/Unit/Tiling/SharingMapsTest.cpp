// Maps most of whose work does not depend on one of their axes.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Elements of images at places that an angle gives, the same for all channels.
std::string sampled(int64_t channels, int64_t rows, int64_t columns) {
  const std::string c = std::to_string(channels), h = std::to_string(rows),
                    w = std::to_string(columns);
  return "expr sampled\ntensor %x: f32[" + c + ",64] input\ntensor %angle: f32[" + h + "," + w +
         "] input\ntensor %y: f32[" + c + "," + h + "," + w + "] output\n" +
         "inputs (%x, %angle)\noutputs (%y)\nmap y [c:" + c + ", i:" + h + ", j:" + w + "]\n" +
         "  let t0 = add(mul(sin(%angle[i, j]), 31.0), 32.0);\n"
         "  %y = mul(%x[c, cast(i64, t0)], sub(t0, floor(t0)))\n";
}

} // namespace

TEST_CASE("maps: what several channels share is found once for all of them") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    const auto work = [&](int64_t channels) {
      const ExprProgram pattern = patternFrom(sampled(channels, 64, 64));
      const Schedule best = valueOf(bestSchedules(pattern, target)).back().schedule;
      const cost::Counts counts = countWork({best, pattern}, target).front();
      return counts.vectorOps * counts.blocks;
    };
    CHECK(work(32) < 32 * work(1) / 3);
  }
}

TEST_CASE("maps: several channels at once give the right numbers") {
  check(sampled(13, 5, 37));
  check(sampled(3, 1, 200));
}

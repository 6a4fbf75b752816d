// Reads whose places constants take apart: the parts of a running sum, an image enlarged.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/schedule/FlatAccess.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Sums of what stands in front of each element in its part of sixteen.
std::string partSums(int64_t rows, int64_t columns) {
  const std::string m = std::to_string(rows), n = std::to_string(columns);
  return "expr sums\ntensor %x: f32[" + m + "," + n + "] input\ntensor %y: f32[" + m + "," + n +
         "] output\ninputs (%x)\noutputs (%y)\nreduction y [i:" + m + ", p:" + n +
         "; j:16] sum f32\n"
         "  %y = if(lt(j, floormod(p, 16)), %x[i, floordiv(p, 16)*16 + j], 0.0)\n";
}

} // namespace

TEST_CASE("digits of axes are terms of an address") {
  const ExprProgram pattern =
      patternFrom("expr e\ntensor %x: f32[8,50,30] input\ntensor %y: f32[8,100,60] output\n"
                  "inputs (%x)\noutputs (%y)\nmap y [n:8, h:100, w:60]\n"
                  "  %y = %x[n, floordiv(h, 2), floormod(floordiv(w, 2), 30)]\n");
  const auto &e = std::get<Equation>(pattern.items[0].value);
  const NodeId read = readsOf(e)[0];
  CHECK(!flatAccess(e, read, pattern));
  const auto terms = digitTerms(e, read, pattern);
  REQUIRE(terms);
  REQUIRE(terms->size() == 3);
  const auto has = [&](size_t t, int axis, int64_t divisor, int64_t modulus, int64_t stride) {
    const DigitTerm &term = (*terms)[t];
    return term.axis == axis && term.divisor == divisor && term.modulus == modulus &&
           term.stride.isConst(stride);
  };
  CHECK(has(0, 0, 1, 0, 1500));
  CHECK(has(1, 1, 2, 0, 30));
  CHECK(has(2, 2, 2, 30, 1));
  const ExprProgram squares =
      patternFrom("expr e\ntensor %x: f32[100] input\ntensor %y: f32[10] output\n"
                  "inputs (%x)\noutputs (%y)\nmap y [i:10]\n  %y = %x[i*i]\n");
  const auto &square = std::get<Equation>(squares.items[0].value);
  CHECK(!digitTerms(square, readsOf(square)[0], squares));
}

TEST_CASE("lanes of one part read what is one for them all, out of a row that stays in a cache") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    const ExprProgram pattern = patternFrom(partSums(512, 1024));
    const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
    const cost::Counts counts = countWork({best.schedule, pattern}, target).front();
    CHECK(counts.gathers == 0);
    const double vectors = 512.0 * 1024 / target.lanes / counts.blocks;
    CHECK(counts.vectorLoads <= 18 * vectors); // sixteen terms, and the result
    CHECK(counts.vectorOps <= 3 * 16 * vectors);
    CHECK(counts.levelBytes[1] <= 3 * 512 * 1024 * 4.0);
  }
  check(partSums(3, 70));
}

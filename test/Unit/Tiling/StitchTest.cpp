// Every schedule of stitched patterns is right: several reductions and maps over common rows, or in one block.
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Softmax of [rows, columns] with e^(x - max) kept; small whole numbers make its sums inexact.
std::string softmax(const std::string &rows, const std::string &columns) {
  std::string shape = rows + "," + columns;
  return "expr softmax\n" + kSymbols + "tensor %x: f32[" + shape + "] input\ntensor %m: f32[" +
         rows + "] temp\ntensor %e: f32[" + shape + "] temp\ntensor %s: f32[" + rows +
         "] temp\ntensor %y: f32[" + shape +
         "] output\ninputs (%x)\noutputs (%y)\nreduction r0 [i:" + rows + "; k:" + columns +
         "] max f32\n  %m = %x[i, k]\nmap m0 [i:" + rows + ", j:" + columns +
         "]\n  %e = exp(sub(%x[i, j], %m[i]))\nreduction r1 [i:" + rows + "; k:" + columns +
         "] sum f32\n  %s = %e[i, k]\nmap m1 [i:" + rows + ", j:" + columns +
         "]\n  %y = div(%e[i, j], %s[i])\n";
}

} // namespace

TEST_CASE("candidates: stitched rows") {
  // Rows that divide the units of a block and the rows of a unit, and rows that do not; one row.
  for (const char *rows : {"64", "37", "1"})
    for (const char *columns : {"1000", "64", "7"})
      check(softmax(rows, columns), {64}, 1e-6);
  check(softmax("n", "40"), {37}, 1e-6);
  check(softmax("n", "40"), {64}, 1e-6);
  // Means, a map that all later equations read, and a value of a row that is also an output.
  check(R"(expr normalise
tensor %x: f32[4,9,50] input
tensor %b: f32[50] input
tensor %a: f32[4,9,50] temp
tensor %s: f32[4,9] output
tensor %q: f32[4,9] temp
tensor %v: f32[4,9] temp
tensor %y: f32[4,9,50] output
inputs (%x, %b)
outputs (%s, %y)
map m0 [h:4, i:9, j:50]
  %a = add(%x[h, i, j], %b[j])
reduction r0 [h:4, i:9; k:50] sum f32
  %s = %a[h, i, k]
reduction r1 [h:4, i:9; k:50] sum f32
  let t0 = sub(%a[h, i, k], %s[h, i]);
  %q = mul(t0, t0)
map m1 [h:4, i:9]
  %v = add(%q[h, i], 1.0)
map m2 [h:4, i:9, j:50]
  %y = mul(sub(%a[h, i, j], %s[h, i]), %v[h, i])
)");
  // The place of a maximum, whose value nobody reads.
  check(R"(expr place
tensor %x: f32[20,70] input
tensor %v: f32[20] temp
tensor %p: i64[20] temp
tensor %y: f32[20,70] output
inputs (%x)
outputs (%y)
reduction r0 [i:20; k:70] argmax f32
  %v = %x[i, k]
  %p = k
map m0 [i:20, j:70]
  %y = cast(f32, eq(%p[i], j))
)");
  // The rows are the first axis alone: the second one is read in another order, and reduced over columns.
  check(R"(expr crossed
tensor %x: f32[33,6,20] input
tensor %a: f32[33,6,20] temp
tensor %c: f32[33,20] temp
tensor %y: f32[33,20,6] output
inputs (%x)
outputs (%y)
map m0 [h:33, i:6, j:20]
  %a = max(%x[h, i, j], 0.0)
reduction r0 [h:33, j:20; i:6] sum f32
  %c = %a[h, i, j]
map m1 [h:33, j:20, i:6]
  %y = sub(%a[h, i*-1 + 5, j], %c[h, j])
)");
}

TEST_CASE("candidates: patterns without common rows run in one block") {
  // A value in a register, read where a predicate holds.
  check(R"(expr guarded
tensor %x: f32[1] input
tensor %v: f32[1] temp
tensor %y: f32[3] output
inputs (%x)
outputs (%y)
map m0 [i:1]
  %v = add(%x[0], 1.0)
map m1 [i:3]
  %y = if(lt(1, i), %v[i - 2], if(lt(i, 1), %x[i], 7.0))
)");
  ExprProgram empty = patternFrom(R"(expr empty
tensor %x: f32[3,0] input
tensor %a: f32[3,0] temp
tensor %y: f32[0,3] output
tensor %z: f32[3] output
inputs (%x)
outputs (%y, %z)
map m0 [i:3, j:0]
  %a = exp(%x[i, j])
map m1 [i:0, j:3]
  %y = add(%a[j, i], 1.0)
reduction r0 [i:3; k:0] sum f32
  %z = %a[i, k]
)");
  CHECK(valueOf(candidateSchedules(empty, targetNamed("sim:sm_90"))).empty());
  check(softmax("1", "1000"), {64}, 1e-6);
  check(R"(expr apart
tensor %x: f32[33,6] input
tensor %a: f32[33,6] temp
tensor %y: f32[33,6] output
inputs (%x)
outputs (%y)
map m0 [i:33, j:6]
  %a = max(%x[i, j], 0.0)
map m1 [i:33, j:6]
  %y = add(%a[i*-1 + 32, j*-1 + 5], 1.0)
)");
  check(R"(expr layers
tensor %x: f32[1,40] input
tensor %w: f32[24,40] input
tensor %v: f32[24,10] input
tensor %a: f32[1,24] temp
tensor %b: f32[1,24] temp
tensor %y: f32[1,10] output
inputs (%x, %w, %v)
outputs (%y)
reduction r0 [i:1, j:24; k:40] sum f32
  %a = mul(%x[0, k], %w[j, k])
map m0 [i:1, j:24]
  %b = max(%a[0, j], 0.0)
reduction r1 [i:1, j:10; k:24] sum f32
  %y = mul(%b[0, k], %v[k, j])
)");
}

TEST_CASE("stitch: a constant that changes with the rows is read where it lies") {
  ExprProgram pattern = patternFrom(R"(expr rows
tensor %x: f32[8,5,2] input
tensor %c: f32[8,5,2] input
tensor %s: f32[8,5] temp
tensor %y: f32[8,3] output
tensor %z: f32[8,2] output
inputs (%x, %c)
outputs (%y, %z)
reduction s [i:8, j:5; k:2] sum f32
  %s = mul(%x[i, j, k], %c[i, j, k])
map y [i:8, j:3]
  %y = %s[i, j]
map z [i:8, j:2]
  %z = %s[i, j + 3]
)");
  fix(pattern, "c");
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
}

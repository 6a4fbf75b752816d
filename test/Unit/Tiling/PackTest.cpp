// Equations that do not need each other, side by side in one grid.
#include "Candidates.h"

#include <set>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Checks all candidates and that packs with so many parts are among them, on every target.
void checkPack(const std::string &text, size_t parts, const std::vector<int64_t> &symbols = {},
               double tolerance = 0) {
  INFO(text);
  ExprProgram pattern = patternFrom(text);
  checkCandidates(pattern, randomInputs(pattern, symbols), symbols, tolerance, 1);
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sm_90", "gfx90a"}) {
    size_t packs = 0;
    for (const Schedule &s : valueOf(candidateSchedules(pattern, targetNamed(name))))
      packs += isPack(s.tree) && s.tree.size() == parts;
    INFO(name);
    CHECK(packs >= 1);
  }
}

} // namespace

TEST_CASE("packs: maps of different extents") {
  checkPack(R"(expr maps
tensor %a: f32[40,70] input
tensor %b: f32[1000] input
tensor %c: f32[3,5,7] input
tensor %x: f32[40,70] output
tensor %y: f32[1000] output
tensor %z: f32[7,3,5] output
inputs (%a, %b, %c)
outputs (%x, %y, %z)
map x [i:40, j:70]
  %x = add(%a[i, j], 1.0)
map y [i:1000]
  %y = mul(%b[i], %b[i])
map z [k:7, i:3, j:5]
  %z = neg(%c[i, j, k])
)",
            3);
}

TEST_CASE("packs: projections of one tensor, with the maps that finish them") {
  checkPack(R"(expr projections
tensor %x: f32[20,24] input
tensor %wq: f32[24,48] input
tensor %wk: f32[24,48] input
tensor %wv: f32[24,40] input
tensor %b: f32[48] input
tensor %q.acc: f32[20,48] temp
tensor %q: f32[20,48] output
tensor %k: f32[20,48] output
tensor %v: f32[20,40] output
inputs (%x, %wq, %wk, %wv, %b)
outputs (%q, %k, %v)
reduction q.acc [i:20, j:48; r:24] sum f32
  %q.acc = mul(%x[i, r], %wq[r, j])
reduction k [i:20, j:48; r:24] sum f32
  %k = mul(%x[i, r], %wk[r, j])
map q [i:20, j:48]
  %q = add(%q.acc[i, j], %b[j])
reduction v [i:20, j:40; r:24] sum f32
  %v = mul(%x[i, r], %wv[r, j])
)",
            3);
}

TEST_CASE("packs: stitched rows beside a reduction, with symbols") {
  checkPack("expr rows\n" + kSymbols + R"(tensor %a: f32[n,70] input
tensor %b: f32[9,130] input
tensor %m: f32[n] temp
tensor %s: f32[n] temp
tensor %y: f32[n,70] output
tensor %z: f32[9] output
inputs (%a, %b)
outputs (%y, %z)
reduction m [i:n; k:70] max f32
  %m = %a[i, k]
reduction z [i:9; k:130] sum f32
  %z = %b[i, k]
reduction s [i:n; k:70] sum f32
  %s = max(sub(%a[i, k], %m[i]), -3.0)
map y [i:n, j:70]
  %y = sub(%s[i], %a[i, j])
)",
            2, {37});
}

TEST_CASE("packs: parts that read each other's values are refused") {
  ExprProgram pattern = patternFrom(R"(expr chain
tensor %a: f32[64] input
tensor %b: f32[64] input
tensor %x: f32[64] output
tensor %y: f32[64] output
inputs (%a, %b)
outputs (%x, %y)
map x [i:64]
  %x = neg(%a[i])
map y [i:64]
  %y = neg(%b[i])
)");
  std::vector<Schedule> candidates = valueOf(candidateSchedules(pattern, targetNamed("sm_90")));
  auto pack = std::find_if(candidates.begin(), candidates.end(),
                           [](const Schedule &s) { return isPack(s.tree); });
  REQUIRE(pack != candidates.end());
  CHECK(verify(*pack, pattern).ok());
  ExprProgram chained = pattern;
  for (Scalar &s : std::get<Equation>(chained.items[1].value).body.nodes)
    if (s.op == ScalarOp::Read)
      s.index = std::get<Equation>(chained.items[0].value).outputs[0];
  Status status = verify(*pack, chained);
  REQUIRE(!status.ok());
  CHECK(status.errors()[0].text ==
        "broken rule: parts side by side do not read each other's values; e1 reads that of e0");
}

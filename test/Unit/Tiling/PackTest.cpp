// Equations that do not need each other, side by side in one grid.
#include "Candidates.h"
#include "Tiling/lower/Lower.h"

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
  checkPack(ProgramText("maps")
                .input("a", "40,70")
                .input("b", "1000")
                .input("c", "3,5,7")
                .map("x", "i:40, j:70", "add(%a[i, j], 1.0)")
                .map("y", "i:1000", "mul(%b[i], %b[i])")
                .map("z", "k:7, i:3, j:5", "neg(%c[i, j, k])"),
            3);
}

TEST_CASE("packs: projections of one tensor, with the maps that finish them") {
  checkPack(ProgramText("projections")
                .input("x", "20,24")
                .input("wq", "24,48")
                .input("wk", "24,48")
                .input("wv", "24,40")
                .input("b", "48")
                .reduction("q.acc", "i:20, j:48; r:24", "sum", "mul(%x[i, r], %wq[r, j])")
                .reduction("k", "i:20, j:48; r:24", "sum", "mul(%x[i, r], %wk[r, j])")
                .map("q", "i:20, j:48", "add(%q.acc[i, j], %b[j])")
                .reduction("v", "i:20, j:40; r:24", "sum", "mul(%x[i, r], %wv[r, j])"),
            3);
}

static ProgramText rowsAndReduction() {
  return ProgramText("rows", kSymbols)
      .input("a", "n,70")
      .input("b", "9,130")
      .reduction("m", "i:n; k:70", "max", "%a[i, k]")
      .reduction("z", "i:9; k:130", "sum", "%b[i, k]")
      .reduction("s", "i:n; k:70", "sum", "max(sub(%a[i, k], %m[i]), -3.0)")
      .map("y", "i:n, j:70", "sub(%s[i], %a[i, j])");
}

TEST_CASE("packs: stitched rows beside a reduction, with symbols") {
  checkPack(rowsAndReduction(), 2, {37});
}

// A row of 70 stays in registers; the search takes what it knows of a part from pattern to pattern.
TEST_CASE("packs: what threads keep, and the seconds, are those of the parts") {
  const ExprProgram pattern = patternFrom(rowsAndReduction());
  for (const char *name : {"x86-64-v3", "sm_90", "gfx90a"}) {
    INFO(name);
    const Target target = targetNamed(name);
    PartScheduleCache known;
    const auto anew = valueOf(bestSchedules(pattern, target));
    for (int again = 0; again < 2; ++again) {
      const auto found = valueOf(bestSchedules(pattern, target, {}, {&known}));
      REQUIRE(found.size() == anew.size());
      CHECK(print(found.back().schedule, pattern) == print(anew.back().schedule, pattern));
      CHECK(found.back().seconds == anew.back().seconds);
      CHECK(known.parts.size() >= 2);
    }
    CHECK(isPack(anew.back().schedule.tree));
    CHECK(anew.back().schedule.kept.empty() == (target.kind == TargetKind::Cpu));
  }
}

// Of the packs with four units the fastest keeps less than its parts alone, which makes another one the fastest: what
// that one keeps was never asked.
TEST_CASE("packs: whichever is chosen keeps what it says") {
  const std::string values = "if(lt(4, d), %v[0, i, r, d - 5], if(and(lt(3, d), lt(d, 5)), "
                             "%x[0, d - 4, i, r], if(lt(d, 4), %v[0, i, r, d], 0.0)))";
  const ExprProgram pattern = patternFrom(
      ProgramText("beside")
          .input("x", "1,1,3,16")
          .input("v", "1,3,16,4")
          .map("a", "n:1, d:4, i:3, j:4", "%v[0, i, j, d]")
          .map("b", "h:3, i:2, j:4, n:1, l:8",
               "%v[0, floormod(h*4 + i*2 + floordiv(j, 2), 3), l + floormod(j, 2)*8, "
               "floordiv(h*8 + i*4 + j, 6)]")
          .reduction("m", "n:1, d:9, i:3; r:16", "max", values)
          .map("shift", "n:1, d:9, i:3", "select(isinf(t0), 0.0, t0)", "let t0 = %m[0, d, i];")
          .reduction("s", "n:1, d:9, i:3; r:16", "sum", "exp(sub(" + values + ", %shift[0, d, i]))")
          .map("y", "n:1, d:9, i:3", "add(log(%s[0, d, i]), %shift[0, d, i])"));
  for (const char *name : {"gfx90a", "gfx942", "sm_90"}) {
    INFO(name);
    const Target target = targetNamed(name);
    const Schedule best = valueOf(bestSchedules(pattern, target)).back().schedule;
    CHECK(isPack(best.tree));
    valueOf(lowerAndRewrite(pattern, best, pattern.symbols, target));
  }
}

TEST_CASE("packs: parts that read each other's values are refused") {
  ExprProgram pattern = patternFrom(ProgramText("chain")
                                        .input("a", "64")
                                        .input("b", "64")
                                        .map("x", "i:64", "neg(%a[i])")
                                        .map("y", "i:64", "neg(%b[i])"));
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
        "broken rule: parts side by side do not read each other's values, given e1, which reads x "
        "of e0; put a barrier between them");
}

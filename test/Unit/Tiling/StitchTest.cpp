// Every schedule of stitched patterns is right: several reductions and maps over common rows, or in one block.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Softmax of [rows, columns] with e^(x - max) kept; small whole numbers make its sums inexact.
std::string softmax(const std::string &rows, const std::string &columns) {
  const std::string whole = "i:" + rows + ", j:" + columns, sums = "i:" + rows + "; k:" + columns;
  return ProgramText("softmax", kSymbols)
      .input("x", rows + "," + columns)
      .reduction("m", sums, "max", "%x[i, k]")
      .map("e", whole, "exp(sub(%x[i, j], %m[i]))")
      .reduction("s", sums, "sum", "%e[i, k]")
      .map("y", whole, "div(%e[i, j], %s[i])");
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
  check(ProgramText("normalise")
            .input("x", "4,9,50")
            .input("b", "50")
            .map("a", "h:4, i:9, j:50", "add(%x[h, i, j], %b[j])")
            .reduction("s", "h:4, i:9; k:50", "sum", "%a[h, i, k]")
            .reduction("q", "h:4, i:9; k:50", "sum", "mul(t0, t0)",
                       "let t0 = sub(%a[h, i, k], %s[h, i]);")
            .map("v", "h:4, i:9", "add(%q[h, i], 1.0)")
            .map("y", "h:4, i:9, j:50", "mul(sub(%a[h, i, j], %s[h, i]), %v[h, i])")
            .output("s"));
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
  check(ProgramText("crossed")
            .input("x", "33,6,20")
            .map("a", "h:33, i:6, j:20", "max(%x[h, i, j], 0.0)")
            .reduction("c", "h:33, j:20; i:6", "sum", "%a[h, i, j]")
            .map("y", "h:33, j:20, i:6", "sub(%a[h, i*-1 + 5, j], %c[h, j])"));
}

TEST_CASE("stitch: sums of columns that lie along them are shared by a CPU's lanes") {
  // A query's scores: keys are rows of 64, gathered where lanes are keys.
  const ProgramText scores =
      ProgramText("scores")
          .input("q", "6,64")
          .input("x", "6,100,64")
          .reduction("s", "h:6, i:100; k:64", "sum", "mul(%q[h, k], %x[h, i, k])")
          .reduction("m", "h:6; i:100", "max", "%s[h, i]")
          .map("y", "h:6, i:100", "sub(%s[h, i], %m[h])");
  check(scores);
  const ExprProgram pattern = patternFrom(scores);
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    bool any = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, target)))
      any = any || countWork({schedule, pattern}, target).front().gathers == 0;
    CHECK(any);
  }
}

TEST_CASE("candidates: patterns without common rows run in one block") {
  // A value in a register, read where a predicate holds.
  check(ProgramText("guarded")
            .input("x", "1")
            .map("v", "i:1", "add(%x[0], 1.0)")
            .map("y", "i:3", "if(lt(1, i), %v[i - 2], if(lt(i, 1), %x[i], 7.0))"));
  ExprProgram empty = patternFrom(ProgramText("empty")
                                      .input("x", "3,0")
                                      .map("a", "i:3, j:0", "exp(%x[i, j])")
                                      .map("y", "i:0, j:3", "add(%a[j, i], 1.0)")
                                      .reduction("z", "i:3; k:0", "sum", "%a[i, k]"));
  CHECK(valueOf(candidateSchedules(empty, targetNamed("sim:sm_90"))).empty());
  check(softmax("1", "1000"), {64}, 1e-6);
  check(ProgramText("apart")
            .input("x", "33,6")
            .map("a", "i:33, j:6", "max(%x[i, j], 0.0)")
            .map("y", "i:33, j:6", "add(%a[i*-1 + 32, j*-1 + 5], 1.0)"));
  check(ProgramText("layers")
            .input("x", "1,40")
            .input("w", "24,40")
            .input("v", "24,10")
            .reduction("a", "i:1, j:24; k:40", "sum", "mul(%x[0, k], %w[j, k])")
            .map("b", "i:1, j:24", "max(%a[0, j], 0.0)")
            .reduction("y", "i:1, j:10; k:24", "sum", "mul(%b[0, k], %v[k, j])"));
}

TEST_CASE("stitch: a constant that changes with the rows is read where it lies") {
  ExprProgram pattern =
      patternFrom(ProgramText("rows")
                      .input("x", "8,5,2")
                      .input("c", "8,5,2")
                      .reduction("s", "i:8, j:5; k:2", "sum", "mul(%x[i, j, k], %c[i, j, k])")
                      .map("y", "i:8, j:3", "%s[i, j]")
                      .map("z", "i:8, j:2", "%s[i, j + 3]"));
  fix(pattern, "c");
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
}

// What a CPU's schedule counts keeps sets of axes as 64 bits.
TEST_CASE("stitched rows of more axes than a CPU's schedule may have") {
  ProgramText text("many");
  std::string before = "1.0";
  for (int e = 0; e < 30; ++e) {
    const std::string name = std::to_string(e), columns = std::to_string(40 + e);
    text.input("x" + name, "32," + columns + ",3")
        .reduction("s" + name, "i:32; k:" + columns + ", l:3", "sum",
                   "mul(%x" + name + "[i, k, l], " + before + ")")
        .map("y" + name, "i:32, l:3, j:" + columns,
             "div(%x" + name + "[i, j, l], %s" + name + "[i])");
    before = "%s" + name + "[i]";
  }
  const ExprProgram pattern = patternFrom(text);
  const Target cpu = targetNamed("x86-64-v3"), gpu = targetNamed("sm_90");
  for (const Schedule &schedule : valueOf(candidateSchedules(pattern, cpu)))
    CHECK(schedule.axes.size() <= 64);
  Schedule most;
  for (Schedule &schedule : valueOf(candidateSchedules(pattern, gpu)))
    if (schedule.axes.size() > most.axes.size())
      most = std::move(schedule);
  CHECK(most.axes.size() > 64);
  require(verify(most, pattern, gpu));
  const Status onCpu = verify(most, pattern, cpu);
  REQUIRE(!onCpu.ok());
  CHECK(format(onCpu.errors().front()).find("on a CPU it has 64 axes at most") !=
        std::string::npos);
}

// Trees of contractions: every candidate is right (as in CandidatesTest.cpp), and those that the shape of a chain
// allows are there. Numbers stay whole and small, so that sums are exact in any order.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/space/Generate.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Whether a tree has blocks along axis `position` of equation e.
bool hasBlocksAlong(const std::string &text, const char *target, int e, int position) {
  const ExprProgram pattern = patternFrom(text);
  const tiling::ScheduledProgram program(pattern);
  const auto alongIt = [&](const Schedule &schedule) {
    const TreeNode *node = &schedule.tree.at(0);
    while (const LoopNode *block = node->loop(LoopKind::Block)) {
      if (const AxisUse *use = schedule.axes[block->axis].in(e);
          use && std::ranges::count(use->positions, position))
        return true;
      node = &block->children.at(0);
    }
    return false;
  };
  return std::ranges::any_of(tiling::treeCandidates(program, targetNamed(target)), alongIt);
}

std::vector<std::string> namesOf(const std::string &text, const char *target) {
  const ExprProgram pattern = patternFrom(text);
  const tiling::ScheduledProgram program(pattern);
  std::vector<std::string> names;
  for (const Schedule &schedule : tiling::treeCandidates(program, targetNamed(target)))
    names.push_back(schedule.name);
  return names;
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::ranges::count(names, name) != 0;
}

ProgramText chain(const std::string &m, const std::string &k, const std::string &n,
                  const std::string &h, const std::string &symbols = "") {
  return ProgramText("chain", symbols)
      .input("a", m + "," + k)
      .input("b", k + "," + n)
      .input("d", n + "," + h)
      .reduction("c", "m:" + m + ", n:" + n + "; k:" + k, "sum", "mul(%a[m, k], %b[k, n])")
      .reduction("e", "m:" + m + ", h:" + h + "; n:" + n, "sum", "mul(%c[m, n], %d[n, h])");
}

} // namespace

TEST_CASE("trees: a chain of two products, in tiles that divide and others") {
  check(chain("64", "16", "64", "32"));
  check(chain("50", "7", "37", "19"));
  check(chain("1", "8", "33", "40"), {}, 0, 1);
  check(chain("300", "5", "3", "70"));
}

TEST_CASE("trees: rows of symbolic number") {
  check(chain("n", "8", "48", "24", kSymbols), {37});
  check(chain("n", "8", "48", "24", kSymbols), {1});
}

TEST_CASE("trees: what both share is symbolic, and lies in device memory where no block has room") {
  check(chain("40", "8", "n", "24", kSymbols), {37}, 0, 1);
}

TEST_CASE("trees: sizes of zero where the kernel is tuned") {
  // Counts and lowering divide by steps, which are at least 1 also where the usual extent is 0.
  const std::string past = "symbol n = 0..300 opt 0 divisor 1\n";
  check(chain("40", "8", "n", "24", past), {37}, 0, 1);
  check(chain("40", "8", "33", "n", past), {37}, 0, 1);
  check(chain("n", "8", "33", "24", past), {37}, 0, 1);
  check(ProgramText("normed", past)
            .input("x", "34,24")
            .input("w", "24,n")
            .input("u", "n,24")
            .reduction("c", "m:34, n:n; k:24", "sum", "mul(%x[m, k], %w[k, n])")
            .reduction("g", "m:34; n:n", "max", "%c[m, n]")
            .map("r", "m:34, n:n", "sub(%c[m, n], %g[m])")
            .reduction("e", "m:34, h:24; n:n", "sum", "mul(%r[m, n], %u[n, h])"),
        {37}, 0, 1);
}

TEST_CASE("trees: weights are packed") {
  ExprProgram pattern = patternFrom(chain("50", "24", "40", "20"));
  fix(pattern, "b");
  fix(pattern, "d");
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
}

TEST_CASE("trees: batches, transposed and shared operands") {
  check(ProgramText("batched")
            .input("q", "3,20,24")
            .input("k", "3,33,24")
            .input("v", "3,33,24")
            .reduction("s", "b:3, i:20, j:33; e:24", "sum", "mul(%q[b, i, e], %k[b, j, e])")
            .reduction("o", "b:3, i:20, d:24; j:33", "sum", "mul(%s[b, i, j], %v[b, j, d])"));
  check(ProgramText("shared")
            .input("x", "20,24")
            .input("w", "24,24")
            .reduction("s", "i:20, j:24; e:24", "sum", "mul(%x[i, e], %w[e, j])")
            .reduction("o", "i:20, d:24; j:24", "sum", "mul(%s[i, j], %w[j, d])"));
}

TEST_CASE("trees: heads that lie side by side in a row") {
  const std::string heads = "h:3, i:20, ";
  check(
      ProgramText("heads")
          .input("x", "20,144")
          .reduction("s", heads + "j:20; e:16", "sum",
                     "mul(%x[i, h * 16 + e], %x[j, 48 + h * 16 + e])")
          .reduction("m", heads.substr(0, heads.size() - 2) + "; j:20", "max", "%s[h, i, j]")
          .map("p", heads + "j:20", "max(sub(%m[h, i], %s[h, i, j]), 0.0)")
          .reduction("o", heads + "d:16; j:20", "sum", "mul(%p[h, i, j], %x[j, 96 + h * 16 + d])"));
}

TEST_CASE("trees: three products, with maps before, between and behind") {
  check(ProgramText("mlp")
            .input("x", "34,12")
            .input("w", "12,40")
            .input("b", "40")
            .input("u", "40,20")
            .input("t", "20,33")
            .map("p", "m:34, k:12", "max(%x[m, k], 0.0)")
            .reduction("c", "m:34, n:40; k:12", "sum", "mul(%p[m, k], %w[k, n])")
            .map("r", "m:34, n:40", "max(add(%c[m, n], %b[n]), 0.0)")
            .reduction("e", "m:34, h:20; n:40", "sum", "mul(%r[m, n], %u[n, h])")
            .map("f", "m:34, h:20", "min(%e[m, h], 3.0)")
            .reduction("o", "m:34, j:33; h:20", "sum", "mul(%f[m, h], %t[h, j])")
            .map("y", "m:34, j:33", "neg(%o[m, j])"));
}

TEST_CASE("trees: sums of rows between products, and a residual around them") {
  check(ProgramText("normed")
            .input("x", "34,24")
            .input("w", "24,40")
            .input("u", "40,24")
            .reduction("c", "m:34, n:40; k:24", "sum", "mul(%x[m, k], %w[k, n])")
            .reduction("g", "m:34; n:40", "max", "%c[m, n]")
            .map("r", "m:34, n:40", "sub(%c[m, n], %g[m])")
            .reduction("e", "m:34, h:24; n:40", "sum", "mul(%r[m, n], %u[n, h])")
            .map("y", "m:34, h:24", "add(%e[m, h], %x[m, h])"));
}

TEST_CASE("trees: blocks share the columns of a few rows, each with what it sums made for itself") {
  const std::string many = "symbol n = 1..3000 opt 700 divisor 1\n";
  for (const char *target : {"x86-64-v3", "sm_80", "gfx90a"}) {
    INFO(target);
    CHECK(hasBlocksAlong(chain("20", "8", "33", "300"), target, 1, 1));
    CHECK(hasBlocksAlong(chain("20", "8", "33", "n", many), target, 1, 1));
    CHECK(!hasBlocksAlong(chain("65536", "8", "33", "300"), target, 1, 1)); // enough blocks
    // Several blocks would write what others need.
    CHECK(!hasBlocksAlong(chain("20", "8", "33", "300").output("c"), target, 1, 1));
  }
  check(chain("20", "8", "33", "300"));
  check(chain("20", "8", "33", "n", many), {301}, 0, 1);
  check(chain("3", "8", "33", "100").map("y", "m:3, h:100", "neg(%e[m, h])"));
}

TEST_CASE("trees: few rows, sums of them, and a product whose sums units share") {
  const auto normed = [](const std::string &m, const std::string &k, const std::string &n) {
    return ProgramText("normed", kSymbols)
        .input("x", m + "," + k)
        .input("w", k + "," + n)
        .reduction("g", "m:" + m + "; k:" + k, "max", "%x[m, k]")
        .map("h", "m:" + m, "neg(%g[m])")
        .map("r", "m:" + m + ", k:" + k, "add(%x[m, k], %h[m])")
        .reduction("c", "m:" + m + ", n:" + n + "; k:" + k, "sum", "mul(%r[m, k], %w[k, n])")
        .map("y", "m:" + m + ", n:" + n, "max(%c[m, n], 0.0)");
  };
  for (const char *target : {"sm_80", "gfx90a"}) {
    INFO(target);
    CHECK(contains(namesOf(normed("8", "300", "70"), target), "tree-thin"));
    CHECK(contains(namesOf(normed("1", "300", "70"), target), "tree-thin")); // no rows at all
    CHECK(!contains(namesOf(normed("9", "300", "70"), target), "tree-thin"));
    CHECK(!contains(namesOf(normed("n", "300", "70"), target), "tree-thin"));
  }
  CHECK(!contains(namesOf(normed("8", "300", "70"), "x86-64-v3"), "tree-thin"));
  check(normed("8", "300", "70"), {}, 0, 1);
  check(normed("1", "300", "70"), {}, 0, 1);
  check(normed("1", "n", "133"), {37}, 0, 1);
  check(normed("3", "128", "64"), {}, 0, 1);
  check(normed("5", "n", "133"), {37}, 0, 1);
  check(normed("2", "40", "n"), {64}, 0, 1);
}

TEST_CASE("trees: few rows by the operands, which are columns of what stands in front") {
  const std::string text =
      ProgramText("channels")
          .input("x", "64,196")
          .input("w", "8,64")
          .reduction("s", "p:196; k:64", "max", "%x[k, p]")
          .map("n", "k:64, p:196", "sub(%x[k, p], %s[p])")
          .reduction("y", "o:8, p:196; k:64", "sum", "mul(%w[o, k], %n[k, p])");
  CHECK(!contains(namesOf(text, "sm_80"), "tree-thin"));
  check(text, {}, 0, 1);
}

TEST_CASE("trees: what others need leaves the kernel") {
  check(ProgramText("needed")
            .input("a", "20,8")
            .input("b", "8,33")
            .input("d", "33,16")
            .reduction("c", "m:20, n:33; k:8", "sum", "mul(%a[m, k], %b[k, n])")
            .reduction("e", "m:20, h:16; n:33", "sum", "mul(%c[m, n], %d[n, h])")
            .output("c"));
}

TEST_CASE("trees: a GPU makes what it sums in the loop that sums it, a CPU has it as a whole") {
  const std::string text = chain("512", "64", "256", "64");
  CHECK(contains(namesOf(text, "sm_80"), "tree-streamed"));
  CHECK(contains(namesOf(text, "sm_80"), "tree"));
  CHECK(!contains(namesOf(text, "x86-64-v3"), "tree-streamed"));
  // Sums of so many columns do not wait in registers, but for those of a block where blocks share them.
  CHECK(!contains(namesOf(chain("65536", "64", "256", "4096"), "sm_80"), "tree-streamed"));
  CHECK(contains(namesOf(chain("512", "64", "256", "4096"), "sm_80"), "tree-streamed"));
}

TEST_CASE("trees: what a sum reads at other points than its term's is not streamed") {
  const std::string text =
      ProgramText("gated")
          .input("a", "20,8")
          .input("b", "8,64")
          .input("d", "64,64")
          .input("u", "64,24")
          .reduction("c", "m:20, n:64; k:8", "sum", "mul(%a[m, k], %b[k, n])")
          .reduction("e", "m:20, h:64; n:64", "sum", "mul(mul(%c[m, n], %c[m, h]), %d[n, h])")
          .map("r", "m:20, h:64", "max(min(%e[m, h], 3.0), -3.0)")
          .reduction("o", "m:20, j:24; h:64", "sum", "mul(%r[m, h], %u[h, j])");
  CHECK(contains(namesOf(text, "sm_90"), "tree"));
  check(text);
}

TEST_CASE("trees: bytes alone choose the tree that moves them fastest, not the fastest one") {
  const auto secondsOfBytes = [](const Schedule &schedule, const ExprProgram &pattern,
                                 const Target &target) {
    std::vector<cost::Counts> phases = countWork({schedule, pattern}, target);
    for (cost::Counts &phase : phases)
      phase.vectorOps = phase.vectorLoads = phase.stagedLoads = phase.gathers = phase.stalls =
          phase.fills = phase.barriers = 0;
    return cost::latency(phases, target);
  };
  int others = 0;
  for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"}) {
    const Target target = targetNamed(name);
    for (const ExprProgram &pattern : {patternFrom(chain("512", "64", "256", "64")),
                                       patternFrom(chain("50", "7", "37", "19"))}) {
      ScheduleSearch bytes;
      bytes.bytesAlone = true;
      const ScheduleVariant least = valueOf(bestSchedules(pattern, target, {}, bytes)).back(),
                            fastest = valueOf(bestSchedules(pattern, target)).back();
      INFO(name << "\n" << print(least.schedule, pattern));
      CHECK(least.seconds >= fastest.seconds);
      others += least.seconds > fastest.seconds;
      for (const Schedule &candidate :
           tiling::treeCandidates(tiling::ScheduledProgram(pattern), target))
        CHECK(secondsOfBytes(least.schedule, pattern, target) <=
              secondsOfBytes(candidate, pattern, target) * (1 + 1e-12));
    }
  }
  CHECK(others > 0);
}

TEST_CASE("trees: one product, with sums of rows in front of it or behind") {
  ProgramText front = ProgramText("front")
                          .input("x", "34,24")
                          .input("w", "24,40")
                          .reduction("g", "m:34; k:24", "max", "%x[m, k]")
                          .map("r", "m:34, k:24", "sub(%x[m, k], %g[m])")
                          .reduction("c", "m:34, n:40; k:24", "sum", "mul(%r[m, k], %w[k, n])"),
              behind = ProgramText("behind")
                           .input("x", "34,24")
                           .input("w", "24,40")
                           .reduction("c", "m:34, n:40; k:24", "sum", "mul(%x[m, k], %w[k, n])")
                           .reduction("g", "m:34; n:40", "max", "%c[m, n]")
                           .map("y", "m:34, n:40", "sub(%c[m, n], %g[m])"),
              finished = ProgramText("finished")
                             .input("x", "34,24")
                             .input("w", "24,40")
                             .reduction("c", "m:34, n:40; k:24", "sum", "mul(%x[m, k], %w[k, n])")
                             .map("y", "m:34, n:40", "neg(%c[m, n])");
  check(front);
  check(behind);
  for (const char *target : {"x86-64-v3", "sm_80", "gfx90a"}) {
    INFO(target);
    CHECK(contains(namesOf(front, target), "tree"));
    CHECK(contains(namesOf(behind, target), "tree"));
    CHECK(!contains(namesOf(finished, target), "tree")); // one nest
  }
}

TEST_CASE("trees: nothing holds products without rows in common") {
  CHECK(namesOf(ProgramText("gram")
                    .input("a", "32,8")
                    .input("b", "8,32")
                    .reduction("c", "i:32, k:32; e:8", "sum", "mul(%a[i, e], %b[e, k])")
                    .reduction("s", "i:32, j:32; k:32", "sum", "mul(%c[i, k], %c[j, k])"),
                "sm_80")
            .empty());
}

namespace {

/// One to four products over common rows, each of the one before and of an operand of its own, with maps and sums of
/// rows between.
std::string randomTree(std::mt19937 &random) {
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  auto size = [&] {
    constexpr int kSizes[] = {1, 2, 3, 5, 8, 13, 16, 17, 24, 31, 32, 33, 40, 64, 70};
    return std::to_string(kSizes[below(std::size(kSizes))]);
  };
  const bool batched = below(3) == 0;
  const std::string batch = std::to_string(2 + below(3)), rows = below(8) == 0 ? "n" : size();
  const std::string lead = batched ? "b:" + batch + ", m:" + rows : "m:" + rows;
  const std::string at = batched ? "b, m" : "m";
  ProgramText text("random", rows == "n" ? kSymbols : "");
  std::string columns = size(), value = "x";
  text.input("x", (batched ? batch + "," : "") + rows + "," + columns);
  const int products = 1 + below(4);
  for (int p = 0; p < products; ++p) {
    const std::string name = std::to_string(p), next = size();
    const bool turned = below(3) == 0, ofBatch = batched && below(2) == 0;
    text.input("w" + name, (ofBatch ? batch + "," : "") +
                               (turned ? next + "," + columns : columns + "," + next));
    text.reduction("c" + name, lead + ", j:" + next + "; k:" + columns, "sum",
                   "mul(%" + value + "[" + at + ", k], %w" + name + (ofBatch ? "[b, " : "[") +
                       (turned ? "j, k" : "k, j") + "])");
    value = "c" + name;
    // Numbers stay below what a float holds exactly.
    text.map("r" + name, lead + ", j:" + next,
             "max(min(%" + value + "[" + at + ", j], 3.0), -3.0)");
    value = "r" + name;
    if (below(4) == 0) {
      text.reduction("g" + name, lead + "; j:" + next, below(2) ? "max" : "sum",
                     "%" + value + "[" + at + ", j]");
      text.map("s" + name, lead + ", j:" + next,
               "max(sub(%" + value + "[" + at + ", j], %g" + name + "[" + at + "]), -4.0)");
      value = "s" + name;
    }
    columns = next;
  }
  return text;
}

} // namespace

TEST_CASE("trees: 300 random ones of one to four products") {
  constexpr unsigned kSeed = 20261126;
  INFO("seed " << kSeed);
  std::mt19937 random(kSeed);
  int trees = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = randomTree(random);
    INFO(text);
    const ExprProgram pattern = patternFrom(text);
    const std::vector<int64_t> symbols(pattern.symbols.size(), 37);
    const std::vector<TensorValue> inputs = randomInputs(pattern, symbols);
    const std::vector<TensorValue> expected = valueOf(evaluate(pattern, inputs));
    // One target in turn: CandidatesTest.cpp shows that all lower the same schedules.
    constexpr const char *kTargets[] = {"x86-64-v3", "x86-64-v4", "sim:sm_90", "sim:gfx90a"};
    const tiling::ScheduledProgram program(pattern);
    const std::vector<Schedule> candidates =
        tiling::treeCandidates(program, targetNamed(kTargets[i % 4]));
    trees += !candidates.empty();
    for (size_t c = static_cast<size_t>(i) % 3; c < candidates.size(); c += 3) {
      INFO(kTargets[i % 4] << "\n" << print(candidates[c], pattern));
      CHECK(difference(runSchedule(pattern, candidates[c], inputs, symbols), expected, 0) == "");
    }
  }
  CHECK(trees > 150);
}

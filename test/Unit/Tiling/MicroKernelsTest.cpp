// A Compute that names a micro-kernel: what a schedule may say of one, the product that it becomes in the kernel, and
// that its numbers are those of the loops.
#include "EditedSchedule.h"
#include "Gir/Product.h"
#include "Gir/Walk.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/search/NameKernels.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr const char *kProduct = R"(expr product
tensor %x: f32[M,24] input
tensor %w: f32[24,N] input
tensor %t: f32[M,N] temp
tensor %y: f32[M,N] output
inputs (%x, %w)
outputs (%y)
reduction t [i:M, j:N; k:24] sum f32
  %t = mul(%x[i, k], %w[k, j])
map y [i:M, j:N]
  %y = max(%t[i, j], 0.0)
)";
constexpr const char *kSchedule = R"(schedule s units 1 lanes 16 {
  axis m spatial (0) of e0, e1
  axis n spatial (1) of e0, e1
  axis k reduction (2) of e0
  edge t register
  tree {
    block m:3 { block n:32 {
      unroll m:1 { unroll n:16 { lane n:1 { init e0 } } }
      seq k:2 { unroll k:1 { unroll m:1 { unroll n:16 { lane n:1 { compute e0 kernel avx512.f32 } } } } }
      unroll m:1 { unroll n:16 { lane n:1 { compute e1 } } }
    } }
  }
})";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  REQUIRE(text.find(from) != std::string::npos);
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string sized(int64_t rows, int64_t columns) {
  return replaced(replaced(kProduct, "M", std::to_string(rows)), "N", std::to_string(columns));
}

Case product() { return Case(sized(6, 32), kSchedule); }

/// A row that no target has: two terms at once.
Target withToyRow() {
  Target target = targetNamed("x86-64-v4");
  target.kernels.push_back({.name = "toy.pairs",
                            .emitter = "outer-product",
                            .runsOn = [](const Target &) { return true; },
                            .m = 3,
                            .n = 16,
                            .k = 2,
                            .registers = 8});
  return target;
}

void refuses(const Case &given, const std::string &from, const std::string &to,
             const Target &target, const std::string &rule) {
  INFO(from << " -> " << to);
  const Status status =
      verify(scheduleFrom(given.edited(from, to), given.pattern), given.pattern, target);
  REQUIRE(!status.ok());
  CHECK(status.errors().front().text == "broken rule: " + rule);
}

/// Loops with a micro-kernel's name.
std::vector<std::string> kernelsNamed(const GirKernel &kernel) {
  std::vector<std::string> names;
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (!s.kernel.empty())
      names.push_back(s.kernel);
  });
  return names;
}

std::vector<TensorValue> outputsOf(const std::string &text, const ExprProgram &pattern,
                                   const std::vector<TensorValue> &inputs) {
  const Schedule schedule = scheduleFrom(text, pattern);
  return runKernel(kernelOf(pattern, schedule), pattern, schedule, inputs, {});
}

} // namespace

TEST_CASE("micro-kernel: a schedule's text has its name, and verifies on targets that have it") {
  const Case given = product();
  const Schedule schedule = scheduleFrom(given.text, given.pattern);
  const std::string text = print(schedule, given.pattern);
  CHECK(text.find("compute e0 kernel avx512.f32\n") != std::string::npos);
  CHECK(print(scheduleFrom(text, given.pattern), given.pattern) == text);
  require(verify(schedule, given.pattern, targetNamed("x86-64-v4")));
  const std::string same = "kernel avx512.f32", other = "kernel avx2.f32";
  refuses(given, same, other, targetNamed("x86-64-v4"),
          "compute e0 kernel avx2.f32 names a kernel of x86-64-v4 (avx512.f32), given avx2.f32");
  CHECK(given.error("init e0", "init e0 kernel avx512.f32") ==
        "expected a loop (block, unit, lane, seq, unroll) or a statement (init, compute, combine, "
        "store, stage, carry, sort, select, barrier, correct, counters), found 'kernel'");
}

TEST_CASE("micro-kernel: its loops are rows, columns and terms, in one tile of registers") {
  const Case given = product();
  const std::string leaf = "compute e0 kernel avx512.f32";
  given.breaks(
      "seq k:2 { unroll k:1 { unroll m:1 { unroll n:16 { lane n:1 { " + leaf + " } } } } }",
      "seq k:2 { unroll k:1 { unroll m:1 { seq n:16 { seq n:1 { " + leaf + " } } } } }",
      leaf + " has around it unroll loops and one lane loop over a spatial axis, given none");
  given.breaks("compute e1", "compute e1 kernel avx512.f32",
               "compute e1 kernel avx512.f32 sums products of two values that are read as they "
               "are, given e1, which does not");
  const Target v4 = targetNamed("x86-64-v4");
  refuses(given, "block m:3", "block m:15", v4,
          leaf + " has 32 registers, given a tile of 15 rows and 32 columns, which takes 33");
  refuses(given, leaf, "compute e0 kernel toy.pairs", v4,
          "compute e0 kernel toy.pairs names a kernel of x86-64-v4 (avx512.f32), given toy.pairs");
}

TEST_CASE("micro-kernel: factors are the same in all lanes and side by side, as they are") {
  const std::string leaf = "compute e0 kernel avx512.f32";
  const std::string loops = replaced(kSchedule, leaf, "compute e0");
  const auto breaks = [&](const std::string &pattern, const std::string &rule) {
    Case(pattern, loops.c_str()).breaks("compute e0", leaf, leaf + rule);
  };
  const std::string noProduct =
      " sums products of two values that are read as they are, given e0, which does not";
  breaks(replaced(sized(6, 32), "%x[i, k]", "%x[i, 0]"),
         " steps along rows of one factor, columns of the other or terms of both, given unroll k:1 "
         "along neither or one alone");
  breaks(replaced(sized(6, 32), "mul(%x[i, k], %w[k, j])", "%w[k, j]"), noProduct);
  breaks(replaced(sized(6, 32), "mul(%x[i, k], %w", "mul(neg(%x[i, k]), %w"), noProduct);
  breaks(replaced(replaced(sized(6, 32), "f32[24,32]", "f32[32,24]"), "%w[k, j]", "%w[j, k]"),
         " reads columns side by side in memory, given e0.r1, which lanes find apart");
  breaks(replaced(replaced(sized(6, 32), "f32[6,24]", "f32[24,32]"), "%x[i, k]", "%x[k, j]"),
         " multiplies what is the same in all lanes by what lanes have along lane n:1, given two "
         "values that lanes have");
  const Case whole(replaced(replaced(sized(6, 32), "f32[", "f64["), "sum f32", "sum f64"),
                   kSchedule);
  refuses(whole, leaf, leaf, targetNamed("x86-64-v4"),
          leaf + " has rows, columns and sums of f32, f32, f32, given f64, f64, f64");
}

TEST_CASE(
    "micro-kernel: tiles become its product, or loops where lanes are cut, and numbers stay") {
  for (const auto &[rows, columns, named] :
       {std::tuple{6, 32, size_t{1}}, {7, 32, size_t{2}}, {6, 40, size_t{1}}, {2, 20, size_t{0}}}) {
    INFO(rows << " x " << columns);
    const Case given(sized(rows, columns), kSchedule);
    const LoweredKernel lowered = kernelOf(given.pattern, scheduleFrom(given.text, given.pattern));
    CHECK(kernelsNamed(lowered.kernel) == std::vector<std::string>(named, "avx512.f32"));
    TextReader in(print(lowered.kernel), "k.gir");
    CHECK(print(valueOf(parseGirKernel(in, {}))) == print(lowered.kernel));
    const std::vector<TensorValue> inputs = randomInputs(given.pattern, {});
    CHECK(difference(outputsOf(given.text, given.pattern, inputs),
                     valueOf(evaluate(given.pattern, inputs)), 1e-5) == "");
  }
}

TEST_CASE("micro-kernel: a row that a target gets in addition") {
  const Case given = product();
  const Target target = withToyRow();
  const std::string toy = given.edited("kernel avx512.f32", "kernel toy.pairs");
  require(verify(scheduleFrom(toy, given.pattern), given.pattern, target));
  const std::string leaf = "compute e0 kernel toy.pairs";
  // One operation makes 3 x 16 x 2 products: a sixth of a vector operation a turn, where the loops take one.
  const Case loops(sized(6, 32), given.edited(" kernel avx512.f32", "").c_str());
  const auto opsOf = [&](const std::string &text) {
    return countWork({scheduleFrom(text, given.pattern), given.pattern}, target)[0].vectorOps;
  };
  CHECK(opsOf(toy) < opsOf(loops.text));
  CHECK(opsOf(given.text) == opsOf(loops.text));
  const Case named(sized(6, 32), toy.c_str());
  refuses(named, "seq k:2 { unroll k:1", "seq k:3 { unroll k:1", target,
          leaf + " has loops over multiples of 3 rows, 16 columns, 2 terms, given 3, 32, 3");
  refuses(named, "block m:3", "block m:2", target,
          leaf + " has loops over multiples of 3 rows, 16 columns, 2 terms, given 2, 32, 2");
}

TEST_CASE("micro-kernel: the search names the first of the table whose rules hold") {
  const Case given = product();
  const std::string loops = given.edited(" kernel avx512.f32", "");
  const auto named = [&](const std::string &text, const Target &target) {
    Schedule schedule = scheduleFrom(text, given.pattern);
    tiling::nameKernels(schedule, tiling::ScheduledProgram(given.pattern), target);
    return print(schedule, given.pattern);
  };
  const auto printed = [&](const std::string &text) {
    return print(scheduleFrom(text, given.pattern), given.pattern);
  };
  CHECK(named(loops, targetNamed("x86-64-v4")) == printed(given.text));
  CHECK(named(loops, targetNamed("x86-64-v3")) == printed(loops)); // 16 lanes
  CHECK(named(loops, targetNamed("sm_90")) == printed(loops));
  const std::string large = replaced(loops, "block m:3", "block m:15"); // beyond its registers
  CHECK(named(large, targetNamed("x86-64-v4")) == printed(large));
  const std::string toy = replaced(given.text, "avx512.f32", "toy.pairs");
  CHECK(named(toy, withToyRow()) == printed(toy)); // chosen already
  Target toyFirst = withToyRow();
  std::ranges::reverse(toyFirst.kernels);
  CHECK(named(loops, toyFirst) == printed(toy));
  const auto inThrees = [](const std::string &text) {
    return replaced(text, "seq k:2", "seq k:3");
  };
  CHECK(named(inThrees(loops), toyFirst) == printed(inThrees(given.text))); // two terms at once
  const Case empty(replaced(sized(6, 32), "24", "0"), loops.c_str());
  Schedule sum = scheduleFrom(loops, empty.pattern);
  tiling::nameKernels(sum, tiling::ScheduledProgram(empty.pattern), targetNamed("x86-64-v4"));
  CHECK(print(sum, empty.pattern).find("kernel") == std::string::npos); // lowered without reads
}

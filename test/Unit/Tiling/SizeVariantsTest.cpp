// Guarded schedules for several sizes: each is right wherever its guards let it run, and together they are nearly as
// fast as what a search for each size alone finds.
#include "Candidates.h"
#include "Cost/Cost.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/search/PlanVariants.h"

#include <set>

using namespace fusec;
using namespace fusec::test;

namespace {

const std::string kRows = "symbol n = 1..99999 opt length divisor 1\n";
const std::string kBatches = "symbol b = 1..999 opt batch divisor 1\n" + kRows;

std::vector<ScheduleVariant> variantsOf(const ExprProgram &pattern, const Target &target) {
  SizedSchedules schedules = valueOf(schedulesBySize(
      pattern, target, [&](const ExprProgram &sized) { return bestSchedules(sized, target); }));
  return planVariants({{&pattern, std::move(schedules)}}).front();
}

double secondsAt(const ExprProgram &pattern, const Schedule &schedule, const Target &target,
                 const std::vector<int64_t> &sizes) {
  const ExprProgram sized = tunedFor(pattern, sizes);
  return predict({schedule, sized}, target).seconds;
}

/// Runs at each size the variant that its guards choose.
void checkVariants(const std::string &text, const std::vector<std::vector<int64_t>> &sizes,
                   size_t atLeast, double tolerance = 0) {
  const ExprProgram pattern = patternFrom(text);
  for (const char *name : {"x86-64-v3", "sim:sm_80"}) {
    const Target target = targetNamed(name);
    const std::vector<ScheduleVariant> variants = variantsOf(pattern, target);
    CHECK(variants.size() >= atLeast);
    REQUIRE(variants.back().guards.empty());
    for (size_t v = 0; v + 1 < variants.size(); ++v)
      CHECK(!variants[v].guards.empty());
    for (const ScheduleVariant &variant : variants)
      CHECK(!limitNotTested(variant, pattern));
    for (const std::vector<int64_t> &size : sizes) {
      const ScheduleVariant &chosen = variantAt(variants, size);
      INFO(name << " " << guardWords(chosen.guards, pattern.symbols) << " at " << size.back()
                << "\n"
                << print(chosen.schedule, pattern));
      const std::vector<TensorValue> inputs = randomInputs(pattern, size);
      CHECK(difference(runSchedule(pattern, chosen.schedule, inputs, size),
                       valueOf(evaluate(pattern, inputs)), tolerance) == "");
    }
  }
}

const std::string kProduct =
    ProgramText("p", kRows)
        .input("a", "n,40")
        .input("b", "40,72")
        .reduction("c", "i:n, j:72; k:40", "sum", "mul(%a[i, k], %b[k, j])");
const std::string kLayers =
    ProgramText("p", kBatches)
        .input("a", "b,n,96")
        .input("w", "96,64")
        .reduction("c", "h:b, i:n, j:64; k:96", "sum", "mul(%a[h, i, k], %w[k, j])")
        .map("y", "h:b, i:n, j:64", "max(%c[h, i, j], 0)");

} // namespace

TEST_CASE("size variants: a product of a few rows and of many") {
  checkVariants(kProduct, {{1}, {2}, {3}, {7}, {8}, {9}, {17}, {37}, {128}, {200}}, 2);
}

TEST_CASE("size variants: rows of a batch of texts") {
  checkVariants(kLayers, {{1, 1}, {1, 2}, {2, 1}, {3, 5}, {1, 37}, {8, 16}, {2, 128}}, 2);
}

TEST_CASE("size variants: what a variant takes to be 1 is guarded, also where 0 is allowed") {
  std::string text = ProgramText("p", kRows)
                         .input("a", "n,1024")
                         .input("b", "1024,1024")
                         .reduction("c", "i:n, j:1024; k:1024", "sum", "mul(%a[i, k], %b[k, j])");
  text.replace(text.find("1..99999"), 8, "0..99999");
  const ExprProgram pattern = patternFrom(text);
  bool isFound = false;
  for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"})
    for (ScheduleVariant variant : variantsOf(pattern, targetNamed(name)))
      for (const Rewrite &rewrite : variant.schedule.via)
        if (rewrite.alternative == kSizeOne) {
          isFound = true;
          CHECK(allHold(variant.guards, {1}));
          CHECK(!allHold(variant.guards, {0}));
          CHECK(!allHold(variant.guards, {2}));
          CHECK(!limitNotTested(variant, pattern));
          variant.guards.pop_back();
          REQUIRE(limitNotTested(variant, pattern));
          CHECK(limitNotTested(variant, pattern)->symbol == 0);
        }
  CHECK(isFound);
}

TEST_CASE("size variants: multiples of a size are tested where they are multiples of rows") {
  const auto isTested = [](const std::string &rows) {
    const ExprProgram pattern = patternFrom(
        ProgramText("p", "symbol n = 1..99999 opt length divisor 1\n")
            .input("a", rows + ",40")
            .input("b", "40,72")
            .reduction("c", "i:" + rows + ", j:72; k:40", "sum", "mul(%a[i, k], %b[k, j])"));
    const std::vector<ScheduleVariant> variants =
        valueOf(bestSchedules(pattern, targetNamed("x86-64-v3")));
    return std::ranges::any_of(variants, [](const ScheduleVariant &variant) {
      return std::ranges::any_of(variant.guards, [](const Guard &g) { return g.modulus != 0; });
    });
  };
  CHECK(isTested("n"));
  CHECK(!isTested("n + 1"));
}

TEST_CASE("size variants: no size that kernels are tuned for is much slower than it could be") {
  for (const std::string &text : {kProduct, kLayers})
    for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"}) {
      const ExprProgram pattern = patternFrom(text);
      const Target target = targetNamed(name);
      const std::vector<ScheduleVariant> variants = variantsOf(pattern, target);
      std::set<std::string> different;
      for (const ScheduleVariant &variant : variants)
        different.insert(print(variant.schedule, pattern));
      CHECK(different.size() <= 8); // with and without bounds checks
      for (const std::vector<int64_t> &sizes : tunedSizes(pattern.symbols)) {
        const ScheduleVariant best =
            valueOf(bestSchedules(tunedFor(pattern, sizes), target)).back();
        INFO(name << " at " << sizes.back() << "\n" << text);
        CHECK(secondsAt(pattern, variantAt(variants, sizes).schedule, target, sizes) <=
              1.101 * best.seconds);
      }
    }
}

TEST_CASE("size variants: tests speak of the side of an image that matters") {
  // Rows of the register tile are along the width alone.
  std::string text =
      ProgramText("p", "symbol h = 1..9999 opt image divisor 1\n"
                       "symbol w = 1..9999 opt image divisor 1\n")
          .input("a", "ROWS,COLUMNS*2,1024")
          .input("b", "1024,32")
          .reduction("c", "i:ROWS, j:COLUMNS, n:32; k:1024", "sum", "mul(%a[i, j*2, k], %b[k, n])");
  for (const auto &[word, size] : {std::pair<std::string, std::string>{"ROWS", "floordiv(h, 16)"},
                                   {"COLUMNS", "floordiv(w, 16)"}})
    for (size_t at; (at = text.find(word)) != text.npos;)
      text.replace(at, word.size(), size);
  const ExprProgram pattern = patternFrom(text);
  const Target target = targetNamed("x86-64-v4");
  const std::vector<ScheduleVariant> variants = variantsOf(pattern, target);
  REQUIRE(variants.size() > 1);
  for (const std::vector<int64_t> &sizes :
       {std::vector<int64_t>{64, 224}, {224, 64}, {64, 320}, {320, 64}, {224, 320}, {320, 224}}) {
    double best = INFINITY;
    for (const ScheduleVariant &variant : variants)
      best = std::min(best, secondsAt(pattern, variant.schedule, target, sizes));
    INFO(sizes[0] << "x" << sizes[1]);
    CHECK(secondsAt(pattern, variantAt(variants, sizes).schedule, target, sizes) <= 1.101 * best);
  }
}

TEST_CASE("size variants: a size of the data is tuned for no more than its bound") {
  const std::vector<Symbol> symbols = {
      {"b", 1, static_cast<int64_t>(SymbolKind::Batch), 999, 1},
      dataDependentSymbol("found", DimExpr::symbol(0) * DimExpr(20), {{"b", 1, 1, 999, 1}})};
  CHECK(optValues(symbols)[1] <= 20 * optValues(symbols)[0]);
  std::set<int64_t> found;
  for (const std::vector<int64_t> &sizes : tunedSizes(symbols)) {
    CHECK(sizes[1] <= 20 * sizes[0]);
    found.insert(sizes[1]);
  }
  CHECK(found.count(1) + found.count(20) == 2);
}

TEST_CASE("size variants: a row of limited length lies in a block's own memory") {
  const std::string softmax = ProgramText("p", kRows)
                                  .input("x", "n,n")
                                  .map("w", "i:n, j:n", "tanh(%x[i, j])")
                                  .reduction("m", "i:n; k:n", "max", "%w[i, k]")
                                  .map("e", "i:n, j:n", "exp(sub(%w[i, j], %m[i]))")
                                  .reduction("s", "i:n; k:n", "sum", "%e[i, k]")
                                  .map("y", "i:n, j:n", "div(%e[i, j], %s[i])");
  const std::string transposed =
      ProgramText("p", kRows)
          .input("a", "n,n")
          .input("b", "64,n")
          .reduction("c", "i:n, j:64; k:n", "sum", "mul(%a[i, k], %b[j, k])");
  for (const std::string &text : {softmax, transposed}) {
    checkVariants(text, {{1}, {5}, {37}, {128}, {255}, {256}, {257}, {300}}, 1, 1e-4);
    const ExprProgram pattern = patternFrom(text);
    for (const char *name : {"x86-64-v3", "sm_80", "gfx90a"}) {
      bool isLimited = false;
      const std::vector<ScheduleVariant> variants = variantsOf(pattern, targetNamed(name));
      for (ScheduleVariant variant : variants)
        for (const SizeLimit &limit : sizeLimits(pattern, variant.schedule.via)) {
          isLimited |= limit.most > 1;
          // A CPU has room for rows sixteen times as long as any that is tuned for, and one of 1 element is.
          if (name == std::string("x86-64-v3"))
            CHECK((limit.most == 1 || limit.most >= 16));
          CHECK(!limitNotTested(variant, pattern));
          CHECK(!allHold(variant.guards, {limit.most + 1}));
          variant.guards.clear();
          CHECK(limitNotTested(variant, pattern));
        }
      INFO(name << "\n" << text);
      CHECK((isLimited || name != std::string("x86-64-v3"))); // a GPU may find another way
      CHECK(sizeLimits(pattern, variantAt(variants, {99999}).schedule.via).empty());
    }
  }
}

TEST_CASE("size variants: an axis that is empty at all sizes") {
  const std::string text =
      ProgramText("p", kRows)
          .input("a", "n,min(n, 0)")
          .input("b", "64,min(n, 0)")
          .reduction("c", "i:n, j:64; k:min(n, 0)", "sum", "mul(%a[i, k], %b[j, k])");
  checkVariants(text, {{1}, {37}, {128}}, 1);
}

TEST_CASE("size variants: a size that is gone where another one is 1 is not written in") {
  checkVariants("expr p\n" + kBatches +
                    "tensor %a: f32[b,40] input\ntensor %c: f32[n] input\n"
                    "tensor %y: f32[mod(b, n),40] output\ninputs (%a, %c)\noutputs (%y)\n"
                    "map y [i:mod(b, n), j:40]\n  %y = add(%a[i, j], %c[i])\n",
                {{5, 3}, {1, 1}, {7, 1}, {9, 512}}, 1);
}

TEST_CASE("size variants: maps of all sizes are one kernel") {
  const std::string text =
      ProgramText("p", kRows).input("a", "n,64").map("y", "i:n, j:64", "neg(%a[i, j])");
  const ExprProgram pattern = patternFrom(text);
  for (const char *name : {"x86-64-v3", "sm_80"})
    CHECK(variantsOf(pattern, targetNamed(name)).size() <= 2);
}

TEST_CASE("size variants: a schedule of parts that only the largest size is long enough for") {
  const std::string text = ProgramText("p", kRows, "i64")
                               .input("a", "5,n,8")
                               .reduction("c", "i:5; j:n, k:8", "prod", "%a[i, j, k]");
  checkVariants(text, {{1}, {3}, {37}, {128}, {512}, {700}}, 1);
}

TEST_CASE("size variants: parts are taken of the sums that are long at the typical size") {
  // Where n is short the sums over u are no longer the longest: taken there, the parts would be of other equations.
  checkVariants(ProgramText("p", kBatches)
                    .input("x", "b,n")
                    .input("u", "n,n")
                    .reduction("p", "; i:b, j:n", "max", "%x[i, j]")
                    .map("y", "", "exp(%p[])")
                    .reduction("q", "; i:n, j:n", "max", "%u[i, j]")
                    .map("z", "", "exp(%q[])")
                    .reduction("r", "; i:b, j:n", "min", "%x[i, j]")
                    .map("v", "", "exp(%r[])"),
                {{1, 3}, {1, 600}, {40, 2}, {300, 40}}, 1);
}

TEST_CASE("size limits: programs within and beyond them") {
  const ExprProgram program =
      patternFrom(ProgramText("p", "symbol m = 1..99 opt 40 divisor 4\n" + kRows)
                      .input("x", "m,n,8")
                      .map("y", "i:m, j:n, k:8", "max(%x[i, j, k], 0)"));
  const auto rangesOf = [](const ExprProgram &of) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const Symbol &symbol : of.symbols)
      ranges.emplace_back(symbol.min, symbol.max);
    return ranges;
  };
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  const auto few = within(program, {{0, 1, 30}, {1, 2, 16}});
  REQUIRE(few);
  CHECK(rangesOf(*few) == Ranges{{1, 28}, {2, 16}});
  CHECK(few->symbols[0].opt == 28);
  CHECK(!within(program, {{0, 1, 3}})); // no multiple of 4
  CHECK(!within(program, {{0, INT64_MAX - 1, INT64_MAX}}));
  const auto one = within(program, {{1, 1, 1}});
  REQUIRE(one);
  CHECK(rangesOf(*one) == Ranges{{1, 99}, {1, 1}});
  CHECK(!within(*one, {{1, 1, 16}})); // nothing uses it

  CHECK(rangesOf(beyond(program, {{1, 1, 16}})) == Ranges{{1, 99}, {17, 99999}});
  CHECK(rangesOf(beyond(program, {{0, 1, 16}})) == Ranges{{20, 99}, {1, 99999}});
  for (const std::vector<SizeLimit> &leavesNoRange :
       {std::vector<SizeLimit>{{1, 2, 16}}, {{0, 1, 16}, {1, 1, 16}}, {{1, 1, 99999}}, {}})
    CHECK(rangesOf(beyond(program, leavesNoRange)) == rangesOf(program));
}

TEST_CASE("size variants: a size of 1 that no run may have is not written in") {
  const std::string text = ProgramText("p", kRows)
                               .input("x", "n,8")
                               .map("y", "i:n, j:8", "max(%x[i, j], 0)")
                               .map("z", "i:n - 5, j:8", "add(%x[i + 5, j], %x[i, j])");
  ExprProgram pattern = patternFrom(text);
  CHECK(!sizeOne(pattern, 1));
  checkVariants(text, {{6}, {16}, {37}, {128}}, 1);
}

// Plans of small programs with an oracle of the test's own: what shares a kernel, what joins one, what must not.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "ApartOf.h"
#include "Fusion/Plan.h"

#include <catch2/catch_all.hpp>
#include <set>

using namespace fusec;
using test::apartOf;
using test::parse;

namespace {

/// A product with a map behind it: %y reads %c at its own point, and %d is a second product with other names.
const std::string kHead = R"(expr test
tensor %a: f32[8,16] input
tensor %b: f32[16,4] input
tensor %a2: f32[8,16] input
tensor %b2: f32[16,4] input
)";
const std::string kProducts = R"(reduction c [i:8, j:4; k:16] sum f32 @"first"
  %c = mul(%a[i, k], %b[k, j])
reduction d [row:8, column:4; depth:16] sum f32 @"second"
  %d = mul(%a2[row, depth], %b2[depth, column])
)";

/// True if an equation reads what another one writes.
bool areConnected(const ExprProgram &pattern) {
  std::set<TensorId> written;
  for (const Item &item : pattern.items) {
    const Equation &e = std::get<Equation>(item.value);
    written.insert(e.outputs.begin(), e.outputs.end());
  }
  for (const Item &item : pattern.items)
    for (const Scalar &s : std::get<Equation>(item.value).body.nodes)
      if (s.op == ScalarOp::Read && written.count(s.index) != 0)
        return true;
  return false;
}

/// Seconds of a pattern: one for an equation, `together` for two that need each other, `beside` for each equation of
/// those that do not.
struct Oracle {
  double together = 1;
  double beside = 2;
  int asked = 0;
  ScheduleOracle function() {
    return [this](const Pattern &pattern) -> Result<KernelTime> {
      ++asked;
      const size_t count = pattern.program.items.size();
      if (count == 1)
        return KernelTime{1, {}};
      return KernelTime{
          count == 2 && areConnected(pattern.program) ? together : beside * double(count), {}};
    };
  }
};

Plan planOf(const ExprProgram &program, Oracle &oracle, SearchMode mode = SearchMode::Full) {
  Result<Target> target = lookupTarget("x86-64-v3");
  PlanOptions options;
  options.mode = mode;
  Result<Plan> plan = buildPlan(program, *target, oracle.function(), options);
  if (!plan)
    FAIL(format(plan.errors().front()));
  if (Status status = verify(*plan, program); !status)
    FAIL(format(status.errors().front()) << "\n" << print(*plan, program));
  return std::move(*plan);
}

ExprProgram withMap(const std::string &map, const std::string &outputs = "%y, %d") {
  const std::string kind = outputs.find("%c") == std::string::npos ? "temp" : "output";
  return parse(kHead + "tensor %c: f32[8,4] " + kind + "\ntensor %d: f32[8,4] output\n" +
               "tensor %y: f32[8,4] output\ninputs (%a, %b, %a2, %b2)\noutputs (" + outputs +
               ")\n" + kProducts + map);
}

const std::string kFinish = "map y [i:8, j:4]\n  %y = max(%c[i, j], 0.0)\n";

} // namespace

TEST_CASE("Equations that differ in names only share a pattern") {
  Oracle oracle;
  ExprProgram program = parse(kHead +
                              "tensor %c: f32[8,4] output\ntensor %d: f32[8,4] output\n"
                              "inputs (%a, %b, %a2, %b2)\noutputs (%c, %d)\n" +
                              kProducts);
  Plan plan = planOf(program, oracle);
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.patterns.size() == 1);
  CHECK(plan.steps[0].pattern == plan.steps[1].pattern);
  CHECK(plan.steps[0].arguments != plan.steps[1].arguments);
  CHECK(plan.steps[0].onnxNodes == std::vector<std::string>{"first"});
  CHECK(plan.steps[1].onnxNodes == std::vector<std::string>{"second"});
}

TEST_CASE(
    "Equations that do not need each other share a kernel where the oracle finds that faster") {
  ExprProgram program = parse(kHead +
                              "tensor %c: f32[8,4] output\ntensor %d: f32[8,4] output\n"
                              "inputs (%a, %b, %a2, %b2)\noutputs (%c, %d)\n" +
                              kProducts);
  for (double beside : {0.6, 1.1}) {
    Oracle oracle;
    oracle.beside = beside;
    CHECK(planOf(program, oracle).steps.size() == (beside < 1 ? 1 : 2));
  }
  // With the map that finishes one of them, too: c and y are a part, d the other one.
  Oracle oracle{1, 0.6};
  ExprProgram finished = withMap(kFinish);
  Plan plan = planOf(finished, oracle);
  REQUIRE(plan.steps.size() == 1);
  // Their order is that of the pattern: the part of one equation may come first.
  std::vector<std::string> names = plan.steps[0].equations;
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"c", "d", "y"});
}

TEST_CASE("A beam of one plan still improves a plan that a seed found") {
  // Only all three pay as one kernel: joining two of them from apart does not lead there.
  const ExprProgram program =
      parse(test::ProgramText("softmax")
                .input("x", "64,256")
                .reduction("most", "i:64; k:256", "max", "%x[i, k]")
                .reduction("sum", "i:64; k:256", "sum", "exp(sub(%x[i, k], %most[i]))")
                .map("y", "i:64, j:256", "div(exp(sub(%x[i, j], %most[i])), %sum[i])"));
  const ScheduleOracle oracle = [](const Pattern &pattern) -> Result<KernelTime> {
    constexpr double kSeconds[] = {0, 2, 10, 1};
    return KernelTime{kSeconds[pattern.program.items.size()] * 1e-5, {}};
  };
  for (int width : {1, 2, 3}) {
    INFO(width);
    FusionLimits limits;
    limits.beamWidth = width;
    limits.allDrafts = 0; // nothing but what is kept of the first drafts
    Result<Plan> plan =
        buildPlan(program, *lookupTarget("sm_80"), oracle, {SearchMode::Full, limits});
    REQUIRE(plan.ok());
    CHECK(plan->steps.size() == 1);
  }
}

TEST_CASE("A search of one paper undoes the kernels that are slower than their equations apart") {
  const ExprProgram program = parse(test::ProgramText("chains")
                                        .input("x", "64,256")
                                        .input("z", "64,256")
                                        .map("a", "i:64, j:256", "tanh(%x[i, j])")
                                        .map("b", "i:64, j:256", "tanh(%a[i, j])")
                                        .map("c", "i:64, j:256", "exp(%z[i, j])")
                                        .map("d", "i:64, j:256", "exp(%c[i, j])"));
  const ScheduleOracle oracle = [](const Pattern &pattern) -> Result<KernelTime> {
    const size_t count = pattern.program.items.size();
    bool isSlow = count > 2;
    for (const Item &item : pattern.program.items)
      for (const Scalar &s : std::get<Equation>(item.value).body.nodes)
        isSlow = isSlow || (count > 1 && s.op == ScalarOp::Tanh);
    return KernelTime{isSlow ? 1e-3 : 1e-5, {}};
  };
  for (SearchMode mode : {SearchMode::Fs, SearchMode::PowerFusion}) {
    INFO(infoOf(mode).name);
    Result<Plan> plan = buildPlan(program, *lookupTarget("x86-64-v3"), oracle, {mode, {}});
    REQUIRE(plan.ok());
    std::set<std::vector<std::string>> launches;
    for (const PlanStep &step : plan->steps)
      launches.insert(step.equations);
    CHECK(launches == std::set<std::vector<std::string>>{{"a"}, {"b"}, {"c", "d"}});
  }
}

TEST_CASE("Another extent, monoid or operation is another pattern") {
  const std::string tail = "inputs (%a, %b, %a2, %b2)\noutputs (%c, %d)\n";
  auto patterns = [&](const std::string &second) {
    Oracle oracle;
    ExprProgram program =
        parse(kHead + "tensor %c: f32[8,4] output\ntensor %d: f32[8,4] output\n" + tail +
              "reduction c [i:8, j:4; k:16] sum f32\n  %c = mul(%a[i, k], %b[k, j])\n" + second);
    return planOf(program, oracle).patterns.size();
  };
  CHECK(patterns("reduction d [i:8, j:4; k:16] sum f32\n  %d = mul(%a2[i, k], %b2[k, j])\n") == 1);
  CHECK(patterns("reduction d [i:8, j:4; k:15] sum f32\n  %d = mul(%a2[i, k], %b2[k, j])\n") == 2);
  CHECK(patterns("reduction d [i:8, j:4; k:16] max f32\n  %d = mul(%a2[i, k], %b2[k, j])\n") == 2);
  CHECK(patterns("reduction d [i:8, j:4; k:16] sum f32\n  %d = add(%a2[i, k], %b2[k, j])\n") == 2);
}

TEST_CASE("A map that finishes a reduction joins it when the oracle finds that no slower") {
  for (double together : {1.0, 2.0, 2.1, -1.0}) {
    INFO(together);
    Oracle oracle{together};
    ExprProgram program = withMap(kFinish);
    Plan plan = planOf(program, oracle);
    bool joins = together >= 0 && together <= 2;
    REQUIRE(plan.steps.size() == (joins ? 2 : 3));
    CHECK(oracle.asked > 0);
    if (!joins)
      continue;
    CHECK(plan.steps[0].equations == std::vector<std::string>{"c", "y"});
    // The result of the product stays inside: the arguments are %a, %b and %y.
    CHECK(plan.steps[0].arguments.size() == 3);
  }
}

TEST_CASE("A kernel that moves more bytes than its equations apart is none, however fast") {
  for (double bytes : {19.0, 20.0, 21.0}) {
    const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
      if (pattern.program.items.size() == 1)
        return KernelTime{1, {}, 10};
      const bool two = pattern.program.items.size() == 2 && areConnected(pattern.program);
      return two ? KernelTime{0.1, {}, bytes} : KernelTime{}; // no schedule
    };
    const Result<Plan> plan = buildPlan(withMap(kFinish), *lookupTarget("x86-64-v3"), oracle);
    REQUIRE(plan.ok());
    CHECK(plan->steps.size() == (bytes <= 20 ? 2 : 3));
  }
}

namespace {

/// Trees hold what other kernels cannot.
Plan planWithoutTrees(const ExprProgram &program, Oracle &oracle) {
  return planOf(program, oracle, SearchMode::Souffle);
}

} // namespace

TEST_CASE("A map stays apart where joining would change what it reads or hide what others need") {
  Oracle oracle{0};
  SECTION("the product is an output as well") {
    CHECK(planWithoutTrees(withMap(kFinish, "%y, %d, %c"), oracle).steps.size() == 3);
  }
  SECTION("it reads the product at another point") {
    CHECK(planWithoutTrees(withMap("map y [i:8, j:4]\n  %y = max(%c[i*-1 + 7, j], 0.0)\n"), oracle)
              .steps.size() == 3);
  }
}

TEST_CASE("The plan says of every value between two launches why they are two") {
  using Lines = std::vector<std::string>;
  Oracle oracle{0};
  SECTION("none") { CHECK(apartOf(planOf(withMap(kFinish), oracle)).empty()); }
  SECTION("others need it") {
    CHECK(apartOf(planWithoutTrees(withMap(kFinish, "%y, %d, %c"), oracle)) ==
          Lines{"c -> y: others than y need it too"});
  }
  SECTION("other points") {
    CHECK(apartOf(planWithoutTrees(withMap("map y [i:8, j:4]\n  %y = max(%c[i*-1 + 7, j], 0.0)\n"),
                                   oracle)) ==
          Lines{"c -> y: y reads it at other points than its own"});
  }
  SECTION("other points of one, and another input that others need") {
    CHECK(apartOf(planWithoutTrees(withMap("map y [i:8, j:4]\n  %y = max(%c[i, 0], %d[i, j])\n"),
                                   oracle)) ==
          Lines{"c -> y: y reads it at other points than its own",
                "d -> y: others than y need it too"});
  }
  SECTION("slower") {
    oracle.together = 2.5;
    CHECK(apartOf(planOf(withMap(kFinish), oracle)) ==
          Lines{"c -> y: one kernel would take 2.5 s, two take 2 s"});
  }
  SECTION("no schedule") {
    oracle.together = -1;
    CHECK(apartOf(planOf(withMap(kFinish), oracle)) ==
          Lines{"c -> y: no schedule runs both as one kernel"});
  }
  SECTION("no map reads it") {
    CHECK(apartOf(planWithoutTrees(
              withMap("reduction y [i:8, j:4; k:3] sum f32\n  %y = %c[i, j]\n"), oracle)) ==
          Lines{"c -> y: y is no map, and only a map finishes a reduction"});
  }
}

TEST_CASE("A reason that lies in a third equation says so") {
  const ScheduleOracle oracle = [](const Pattern &) -> Result<KernelTime> {
    return KernelTime{1, {}, 10};
  };
  std::string tensors, equations, before = "a";
  constexpr int kProducts = 17;
  for (int p = 0; p < kProducts; ++p) {
    const std::string name = p + 1 < kProducts ? "c" + std::to_string(p) : "y";
    tensors += "tensor %" + name + ": f32[8,8] " + (name == "y" ? "output" : "temp") + "\n";
    equations += "reduction " + name + " [i:8, j:8; k:8] sum f32\n  %" + name + " = mul(%" +
                 before + "[i, k], %b[k, j])\n";
    before = name;
  }
  const ExprProgram program = parse("expr chain\ntensor %a: f32[8,8] input\ntensor %b: f32[8,8] "
                                    "input\n" +
                                    tensors + "inputs (%a, %b)\noutputs (%y)\n" + equations);
  const Result<Plan> plan = buildPlan(program, *lookupTarget("x86-64-v3"), oracle);
  REQUIRE(plan.ok());
  const std::vector<std::string> apart = apartOf(*plan);
  for (const std::string &reason : apart)
    UNSCOPED_INFO(reason);
  CHECK(std::ranges::any_of(apart, [](const std::string &reason) {
    return reason.find("with what else their kernels hold: a tree of loops with contractions holds "
                       "16 equations at most") != std::string::npos;
  }));
}

TEST_CASE("Unfused, every equation is a kernel of its own") {
  ExprProgram program = withMap(kFinish);
  Plan plan = unfusedPlan(program);
  REQUIRE(verify(plan, program).ok());
  REQUIRE(plan.steps.size() == 3);
  CHECK(plan.patterns.size() == 2); // the products are equal
  CHECK(plan.steps[2].equations == std::vector<std::string>{"y"});
  CHECK(apartOf(Plan{{}, {}, plan.steps, valuesBetween(plan, program, [](auto...) {
                       return "x";
                     })}) == std::vector<std::string>{"c -> y: x"});
}

TEST_CASE(
    "Plans print, parse and verify; one that runs an equation never, twice or too early does not") {
  Oracle oracle{3};
  ExprProgram program = withMap(kFinish);
  Plan plan = planOf(program, oracle);
  REQUIRE(plan.steps.size() == 3);
  std::string text = print(plan, program);
  TextReader in(text, "plan");
  Result<Plan> again = parsePlan(in, program);
  REQUIRE(again.ok());
  CHECK(print(*again, program) == text);
  CHECK(apartOf(*again) == apartOf(plan));
  REQUIRE(plan.crossKernelValues.size() == 1);
  Plan cut = plan;
  cut.steps.pop_back();
  CHECK_FALSE(verify(cut, program).ok());
  Plan doubled = plan;
  doubled.steps.push_back(doubled.steps.front());
  CHECK_FALSE(verify(doubled, program).ok());
  Plan early = plan;
  std::swap(early.steps.front(), early.steps.back());
  CHECK_FALSE(verify(early, program).ok());
}

TEST_CASE("plan: the values between launches are those of the launches that were read; an edited "
          "reason is none") {
  const ExprProgram program = withMap(kFinish);
  Plan plan = unfusedPlan(program);
  plan.crossKernelValues =
      valuesBetween(plan, program, [](auto...) { return "as the search says"; });
  const std::string apart = "plan {\n  launch { c }\n  launch { d }\n  launch { y }\n}\n";
  std::string said = print(plan, program);
  said.erase(0, said.find("apart"));
  auto reasons = [&](const std::string &text) {
    TextReader in(text, "plan");
    Result<Plan> read = parsePlan(in, program);
    REQUIRE(read.ok());
    return apartOf(*read);
  };
  using List = std::vector<std::string>;
  const List unknown = {"c -> y: " + std::string(kNoReason)};
  CHECK(reasons(apart + said) == List{"c -> y: as the search says"});
  CHECK(reasons(apart) == unknown);
  std::string edited = said;
  CHECK(reasons(apart + edited.replace(edited.find("search"), 6, "editor")) == unknown);
  CHECK(reasons("plan {\n  launch { c y }\n  launch { d }\n}\n" + said) == List());
}

TEST_CASE("plan: a launch without equations is refused") {
  const ExprProgram program = withMap(kFinish);
  TextReader in("plan {\n  launch { }\n  launch { c y }\n  launch { d }\n}\n", "plan");
  Result<Plan> plan = parsePlan(in, program);
  REQUIRE(!plan.ok());
  CHECK_THAT(format(plan.errors()[0]),
             Catch::Matchers::ContainsSubstring("a launch has an equation"));
}

TEST_CASE("plan: a phase without equations is refused") {
  const ExprProgram program = withMap(kFinish);
  for (const char *text : {"plan {\n  launch { | c y }\n  launch { d }\n}\n",
                           "plan {\n  launch { c | | y }\n  launch { d }\n}\n"}) {
    TextReader in(text, "plan");
    Result<Plan> plan = parsePlan(in, program);
    REQUIRE(!plan.ok());
    CHECK_THAT(format(plan.errors()[0]),
               Catch::Matchers::ContainsSubstring("every phase has an equation"));
  }
}

// Kernels that follow each other as phases of one, with an oracle of the test's own.
#include "../ParseProgram.h"
#include "ApartOf.h"
#include "Cost/Cost.h"
#include "Cost/SecondsText.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using test::apartOf;
using test::parse;

TEST_CASE("plan: kernels that follow each other become phases of one where a barrier costs less "
          "than a launch") {
  // Three sums over everything before them: no block can have what the next one needs.
  const ExprProgram program = parse(R"(expr chain
tensor %x: f32[64] input
tensor %a: f32[64] temp
tensor %b: f32[64] temp
tensor %y: f32[32] output
inputs (%x)
outputs (%y)
reduction a [i:64; k:64] sum f32
  %a = mul(%x[k], cast(f32, add(i, k)))
reduction b [i:64; k:64] sum f32
  %b = mul(%a[k], cast(f32, add(i, k)))
reduction y [i:32; k:64] sum f32
  %y = mul(%b[k], cast(f32, add(i, k)))
)");
  // Each takes `alone` times what a barrier saves, the last one with blocks of `lastUnits`, the others with 8. No
  // schedule runs two of them in one phase; or the last two, for `lastTwo` times as much in blocks of 4.
  const double saved = cost::savedByPhase(*lookupTarget("sm_80"));
  REQUIRE(saved > 0);
  Plan made;
  double lastTwo = 0;
  cost::Counts ofOthers; // so many blocks that it matters how many a core holds
  ofOthers.blocks = 1e5;
  ofOthers.unitsPerBlock = 8;
  ofOthers.vectorOps = 10;
  ofOthers.barriers = 1;
  cost::Counts ofLast = ofOthers;
  auto planFor = [&](const char *targetName, double alone, SearchMode mode, int lastUnits = 8) {
    ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
      const Equation &e = std::get<Equation>(pattern.program.items.back().value);
      const bool isLast = e.axes[0].extent.isConst(32);
      if (lastTwo > 0 && isLast && pattern.program.items.size() == 2)
        return KernelTime{lastTwo * saved, {{4, {lastTwo * saved, {cost::Counts{}}}}}};
      if (pattern.program.items.size() > 1)
        return KernelTime();
      return KernelTime{alone * saved,
                        {{isLast ? lastUnits : 8, {alone * saved, {isLast ? ofLast : ofOthers}}}}};
    };
    PlanOptions options;
    options.mode = mode;
    Result<Plan> plan = buildPlan(program, *lookupTarget(targetName), oracle, options);
    REQUIRE(plan.ok());
    REQUIRE(verify(*plan, program).ok());
    const std::string text = print(*plan, program);
    TextReader in(text, "plan");
    Result<Plan> read = parsePlan(in, program);
    REQUIRE(read.ok());
    CHECK(print(*read, program) == text);
    CHECK(read->patterns.size() == plan->patterns.size());
    for (size_t p = 0; p < plan->patterns.size(); ++p)
      CHECK(read->patterns[p].signature == plan->patterns[p].signature);
    made = std::move(*plan);
    return text.substr(0, text.find("apart"));
  };
  const std::string joined = "plan {\n  launch { a | b | y }\n}\n";
  const std::string shared = "plan {\n  launch { a }\n  launch { b | y }\n}\n";
  const std::string apart = "plan {\n  launch { a }\n  launch { b }\n  launch { y }\n}\n";
  auto reasons = [&] { return apartOf(made); };
  using List = std::vector<std::string>;
  const std::string never = "no schedule runs both as one kernel";
  CHECK(planFor("sm_80", 2, SearchMode::Full) == joined);
  CHECK(planFor("sm_80", 2, SearchMode::Souffle) == joined);
  CHECK(planFor("sm_80", 2, SearchMode::Fs) == apart); // FusionStitching has no such barrier
  CHECK(reasons() == List{"a -> b: " + never, "b -> y: " + never});
  // Little to gain: b runs a's code.
  CHECK(planFor("sm_80", 100, SearchMode::Full) == shared);
  const std::string little =
      never + "; no phases of one kernel: a barrier in place of a launch saves no more than " +
      cost::secondsText(saved) +
      ", and the layers before, of the same kernels, share their code with those behind";
  CHECK(reasons() == List{"a -> b: " + little});
  // With y's shared memory a core would hold one block of the others in place of eight.
  ofLast.sharedBytesPerBlock = 96 << 10;
  CHECK(planFor("sm_80", 2, SearchMode::Full) == "plan {\n  launch { a | b }\n  launch { y }\n}\n");
  CHECK(reasons() == List{"b -> y: " + never +
                          "; no phases of one kernel: a barrier and blocks that suit both cost "
                          "more than a launch"});
  ofLast = ofOthers;
  CHECK(planFor("sm_80", 2, SearchMode::Full, 4) ==
        "plan {\n  launch { a | b }\n  launch { y }\n}\n");
  CHECK(reasons() ==
        List{"b -> y: " + never + "; no phases of one kernel: no size of their blocks suits both"});
  // As one kernel the last two are faster, but the first one would be a launch of its own again.
  lastTwo = 3.5;
  CHECK(planFor("sm_80", 2, SearchMode::Full, 4) ==
        "plan {\n  launch { a | b }\n  launch { y }\n}\n");
  auto times = [&](double factor) { return cost::secondsText(factor * saved); };
  CHECK(reasons() ==
        List{"b -> y: one kernel would take " + times(3.5) + ", two take " + times(4) +
             ", but the plan would take " + times(0.5) +
             " longer: other kernels would no longer be phases of one; no phases of one kernel: no "
             "size of their blocks suits both"});
  CHECK(planFor("sm_80", 2, SearchMode::None, 4) == apart);
  CHECK(reasons().back() == "b -> y: one kernel would take " + times(3.5) + ", two take " +
                                times(4) + ": --search-mode=none does not join them");
  lastTwo = 0;
  CHECK(planFor("gfx90a", 2, SearchMode::Full) == apart); // its barrier costs more than a launch
  CHECK(reasons() == List{"a -> b: " + never, "b -> y: " + never});
}

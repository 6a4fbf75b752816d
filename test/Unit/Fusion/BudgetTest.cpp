// What a search may spend, counted in evaluations of the two models.
#include "MapShapes.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

struct Found {
  Plan plan;
  int asked = 0;     // of the accurate model
  int equations = 0; // of kernels of several that it was asked for
};

const Target kGpu = *lookupTarget("sm_80");

Found planWith(const ExprProgram &program, const FusionLimits &limits, SearchMode mode,
               const Target &target = kGpu) {
  Found found;
  const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
    ++found.asked;
    const auto size = static_cast<int>(pattern.program.items.size());
    found.equations += size > 1 ? size : 0;
    return timeOf(pattern);
  };
  Result<Plan> plan = buildPlan(program, target, oracle, {mode, limits});
  REQUIRE(plan.ok());
  REQUIRE(verify(*plan, program).ok());
  found.plan = std::move(*plan);
  return found;
}

constexpr int kOperations = 200;

} // namespace

TEST_CASE("budget: never more evaluations than allowed, and a plan of any of them") {
  for (const auto &[name, make] : kShapes) {
    const ExprProgram program = make(kOperations).program();
    for (const SearchModeInfo &mode : kSearchModes)
      for (int each : {1, 2, 3, 5, 8, 20}) {
        INFO(name << ", " << mode.name << ", " << each << " for an equation");
        FusionLimits limits;
        limits.evaluations = limits.quickEvaluations = each;
        const Found found = planWith(program, limits, mode.mode);
        CHECK(found.plan.evaluations.accurate == found.asked);
        CHECK(found.plan.evaluations.accurate <= each * kOperations);
        CHECK(found.plan.evaluations.quick <= each * kOperations);
        CHECK(found.plan.evaluations.quick >= kOperations);
        if (each == 1)
          for (const Pattern &pattern : found.plan.patterns)
            CHECK(pattern.program.items.size() == pattern.phaseStarts.size() + 1);
      }
  }
}

TEST_CASE("budget: kernels that are asked for are weighed by their equations") {
  constexpr int kLargest = 64; // equations of a kernel
  for (const auto &[name, make] : kShapes) {
    INFO(name);
    const ExprProgram program = make(kOperations).program();
    FusionLimits least;
    least.leastWeighed = 0;
    least.weighed = 1;
    const Found all = planWith(program, {}, SearchMode::Full),
                few = planWith(program, least, SearchMode::Full);
    CHECK(few.equations < kOperations + kLargest);
    CHECK(few.equations <= all.equations);
    CHECK(all.equations <=
          std::max(FusionLimits().leastWeighed, FusionLimits().weighed * kOperations) + kLargest);
  }
}

TEST_CASE("budget: the fewest evaluations find a slower plan, more than enough no other one") {
  for (const auto &[name, make] : kShapes) {
    INFO(name);
    const ExprProgram program = make(kOperations).program();
    FusionLimits least, many;
    least.evaluations = least.quickEvaluations = 1;
    many.evaluations *= 10;
    many.quickEvaluations *= 10;
    const Plan usual = planWith(program, {}, SearchMode::Full).plan;
    const Plan unsearched = planWith(program, least, SearchMode::Full).plan;
    CHECK(secondsOf(unsearched, kGpu) > 1.01 * secondsOf(usual, kGpu));
    const Plan more = planWith(program, many, SearchMode::Full).plan;
    CHECK(print(more, program) == print(usual, program));
    CHECK(more.evaluations.accurate == usual.evaluations.accurate);
  }
}

TEST_CASE("budget: what was not looked at is said") {
  Maps maps; // two that differ, so that each alone is asked for
  maps.add({maps.add({"x"}), "x"});
  const ExprProgram program = maps.program();
  FusionLimits least;
  least.evaluations = 1;
  const Plan plan = planWith(program, least, SearchMode::Full, *lookupTarget("gfx90a")).plan;
  REQUIRE(plan.crossKernelValues.size() == 1);
  CHECK(plan.crossKernelValues[0].reason ==
        "the search had no evaluation left for both as one kernel");
}

TEST_CASE("budget: lists too long for every draft lose little") {
  for (const auto &[name, make] : kShapes) {
    INFO(name);
    const ExprProgram program = make(kOperations).program();
    FusionLimits fewDrafts;
    fewDrafts.allDrafts = kOperations - 1;
    const Plan all = planWith(program, {}, SearchMode::Full).plan,
               few = planWith(program, fewDrafts, SearchMode::Full).plan;
    CHECK(few.evaluations.quick < all.evaluations.quick);
    CHECK(secondsOf(few, kGpu) < 1.06 * secondsOf(all, kGpu));
  }
}

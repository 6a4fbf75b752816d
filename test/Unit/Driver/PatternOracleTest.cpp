// What planning has found is asked for once: scheduling and explain get it from memory, and it is what they would have
// found by themselves.
#include "Driver/PatternOracle.h"
#include "Driver/TargetSearch.h"
#include "ModelEquations.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using fusec::test::equationsOf;

namespace {

std::string text(const SizedSchedules &schedules, const ExprProgram &pattern) {
  std::string out;
  for (const std::vector<ScheduleVariant> &variants : schedules.found)
    for (const ScheduleVariant &variant : variants) {
      out += print(variant.schedule, pattern) + std::to_string(variant.seconds) + "\n";
      for (const search::Evaluation &considered : variant.considered)
        out += considered.name + " " + std::to_string(considered.score) + "\n";
    }
  return out;
}

} // namespace

TEST_CASE("what planning found is not searched for again") {
  int64_t known = 0, ofFreePhases = 0;
  for (const char *model : {"mmoe", "digits-transformer", "swin_b"}) {
    const std::string folder =
        std::string(model) == "digits-transformer" ? "/models/" : "/models/tiny/";
    const ExprProgram program =
        equationsOf(std::string(FUSEC_SOURCE_DIR) + folder + model + ".onnx");
    for (const char *name : {"x86-64-v3", "sm_80"}) {
      INFO(model << ", " << name);
      TargetState state;
      state.target = *lookupTarget(name);
      const PlanOptions options;
      REQUIRE(planTarget(program, {}, options, state).ok());
      const int64_t before = state.oracle->searches();
      PatternOracle fresh(state.target, options);
      bool anyFree = false;
      for (const Pattern &pattern : state.plan.patterns) {
        const auto mine = state.oracle->schedules(pattern), other = fresh.schedules(pattern);
        REQUIRE(mine.ok());
        REQUIRE(other.ok());
        CHECK(text(*mine, pattern.program) == text(*other, pattern.program));
        anyFree |= pattern.phaseStarts.empty();
        ofFreePhases += pattern.phaseStarts.empty();
      }
      CHECK(fresh.searches() == static_cast<int64_t>(state.plan.patterns.size()));
      // Packs and kernels of given phases are other questions.
      const int64_t again = state.oracle->searches() - before;
      CHECK((again < fresh.searches() || !anyFree));
      known += fresh.searches() - again;
      // Each question has an answer in memory by now, but for packs' parts.
      const int64_t asked = fresh.searches();
      for (const Pattern &pattern : state.plan.patterns)
        if (pattern.phaseStarts.empty()) {
          REQUIRE(fresh.schedules(pattern).ok());
          REQUIRE(fresh.unrestrictedSchedules(pattern).ok());
        }
      CHECK(fresh.searches() == asked);
    }
  }
  CHECK(4 * known >= 3 * ofFreePhases);
}

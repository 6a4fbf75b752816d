// The full search finds its plans itself: by the beam and by improving its drafts, without greedy merging (PowerFusion)
// and the partition from the top (Souffle), it comes to the same ones for most networks, and to others that take at
// most a tenth longer.
#include "Driver/TargetSearch.h"
#include "ModelEquations.h"

#include <catch2/catch_all.hpp>

#include <filesystem>

using namespace fusec;
using fusec::test::equationsOf;

namespace {

/// Predicted seconds of the plan. It is searched for on a program of its own: a body notes the ranges that it is asked
/// for.
double planSeconds(const std::string &target, ExprProgram program, bool otherSeeds) {
  TargetState state;
  state.target = *lookupTarget(target);
  PlanOptions options;
  options.limits.otherSeeds = otherSeeds;
  REQUIRE(planTarget(program, {}, options, state).ok());
  return state.plan.seconds;
}

} // namespace

TEST_CASE("the full search does without greedy merging and the partition from the top") {
  int plans = 0, equal = 0;
  for (const auto &file :
       std::filesystem::directory_iterator(std::string(FUSEC_SOURCE_DIR) + "/models/tiny")) {
    if (file.path().extension() != ".onnx")
      continue;
    const ExprProgram program = equationsOf(file.path());
    for (const char *target : {"x86-64-v3", "sm_80", "gfx90a"}) {
      INFO(file.path() << ", " << target);
      const double with = planSeconds(target, program, true),
                   without = planSeconds(target, program, false);
      CHECK(without < 1.1 * with);
      ++plans;
      equal += without == with;
    }
  }
  CHECK(plans >= 48);
  CHECK(2 * equal > plans);
}

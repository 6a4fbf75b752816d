// Whose error it is that a check refuses a schedule: the user's who wrote it, or the search's that chose it.
#include "Driver/TargetSearch.h"
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Support/Diag.h"
#include "fusec/compiler.h"

#include <catch2/catch_all.hpp>

#include <functional>

using namespace fusec;

namespace {

constexpr const char *kOwnFault =
    "; fusec chose this itself, which is a bug: please report it with the model";

struct Searched {
  ExprProgram program;
  TargetState target;

  Searched(const std::string &name, const std::string &text) : program(test::parse(text)) {
    Result<Target> known = lookupTarget(name);
    REQUIRE(known.ok());
    target.target = *known;
    REQUIRE(planTarget(program, {}, {}, target).ok());
    REQUIRE(scheduleTarget({}, target).ok());
    REQUIRE(checkSchedules(program, target).ok());
    REQUIRE(lowerToGir(program, target).ok());
  }
  Schedule &schedule() { return target.schedules.at(0).at(0).schedule; }

  /// The one error of `check`, once as a user's and once as the search's.
  void refuses(const std::function<Status()> &check, Diag written, const std::string &text) {
    for (bool isWritten : {true, false}) {
      target.schedulesWritten = isWritten;
      const Status status = check();
      REQUIRE(status.errors().size() == 1);
      const Diagnostic &error = status.errors()[0];
      CHECK(error.id == (isWritten ? written : Diag::InternalError));
      CHECK(error.text == text + (isWritten ? "" : kOwnFault));
    }
  }
};

// Rows that are added up, and the sum of each taken from its row.
const std::string kRows = test::ProgramText("rows")
                              .input("x", "8,64")
                              .reduction("t", "i:8; k:64", "sum", "%x[i, k]")
                              .map("y", "i:8, j:64", "sub(%x[i, j], %t[i])");

} // namespace

TEST_CASE("a rule that a chosen schedule breaks is a bug, one that a user wrote is their error") {
  Searched s("x86-64-v3", kRows);
  s.schedule().units = 3;
  s.refuses([&] { return checkSchedules(s.program, s.target); }, Diag::BadIr,
            "broken rule: a block of x86-64-v3 has one unit, given 3");
}

TEST_CASE("so it is with what shows when the schedule is lowered") {
  Searched s("x86-64-v3", kRows);
  s.schedule().kept = {{{1, 0, 0}, MemLevel::Register, ReadPlace{0, 0, 0}}};
  s.refuses(
      [&] { return lowerToGir(s.program, s.target); }, Diag::BadIr,
      "keep e1.r0 register from e0.r0 is of a value that its threads have had and that register "
      "memory has room for, given no room; without this line they read it");
}

TEST_CASE("so it is with blocks that have no room") {
  Searched s("sm_80", kRows);
  s.target.target.staticSharedBytes = s.target.target.dynamicSharedBytes = -1;
  const int64_t bytes = s.target.gir.kernels.at(0).sharedBytes;
  s.refuses([&] { return lowerToGir(s.program, s.target); }, Diag::LimitExceeded,
            "a block needs " + std::to_string(bytes) +
                " bytes of shared memory, and has at most -1 on sm_80; take smaller tiles");
}

TEST_CASE("a plan that no schedule runs is a bug, but for one that a user wrote") {
  Searched s("x86-64-v3", R"(expr updates
tensor %x: f32[4] input
tensor %u: f32[2] input
tensor %at: i64[2] input
tensor %base: f32[4] temp
tensor %y: f32[4] output
inputs (%x, %u, %at)
outputs (%y)
map base [i:4]
  %base = mul(%x[i], 2.0)
scatter s [i:2] add base %base
  %y[%at[i]] = %u[i]
)");
  TextReader in("plan { launch { base s } }", "plan");
  Result<Plan> both = parsePlan(in, s.program); // in one kernel
  REQUIRE(both.ok());
  s.target.plan = *both;
  const std::string name = both->patterns.at(0).program.name;
  s.refuses(
      [&] {
        s.target.schedules.clear();
        s.target.planWritten = s.target.schedulesWritten;
        return scheduleTarget({}, s.target);
      },
      Diag::BadIr,
      "no schedule runs the equations of " + name +
          " as one kernel: one of them is a scan, a scatter or opaque, or has no elements, "
          "or no tree of loops holds a contraction and the others");
}

TEST_CASE("searches: the public options are Fusion's own where nobody says otherwise") {
  const compiler::Options options;
  const FusionLimits limits;
  CHECK(options.fusionCandidates == limits.topPatterns);
  CHECK(options.fusionGroup == limits.consumersTogether);
  CHECK(options.fusionBeam == limits.beamWidth);
  CHECK(options.fusionQuickEvaluations == limits.quickEvaluations);
  CHECK(options.fusionEvaluations == limits.evaluations);
  CHECK(options.fusionThorough == limits.thoroughlyWeighed);
}

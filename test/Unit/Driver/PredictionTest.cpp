// The search and the end of the compiler speak of the same kernels: what the search expects of its plan, with all that
// threads keep, counters in the place of barriers and alternatives of phases, is what the schedules are predicted to
// take.
#include "Driver/Pipeline.h"
#include "Driver/TargetSearch.h"

#include <catch2/catch_all.hpp>

using namespace fusec;

TEST_CASE("a search that runs out of thorough evaluations expects no less than what is made") {
  double expected[2] = {}, made[2] = {}; // with none of them, with all
  for (int thorough : {0, 512}) {
    CompileOptions options;
    options.inputPath = std::string(FUSEC_SOURCE_DIR) + "/models/tiny/swin_b.onnx";
    options.targets = {"x86-64-v3", "sm_80", "gfx90a"};
    options.stopAfter = Stage::Schedule;
    options.plan.limits.thoroughlyWeighed = thorough;
    options.inspect = [&](const CompileState &state) {
      for (const TargetState &target : state.targets) {
        expected[thorough > 0] += target.plan.seconds;
        made[thorough > 0] += predictedSeconds(state.program, target);
        CHECK(target.plan.seconds >= predictedSeconds(state.program, target) * (1 - 1e-9));
      }
      return success();
    };
    REQUIRE(compile(options).ok());
  }
  CHECK(expected[0] > 1.001 * made[0]);
  CHECK(made[0] < 1.05 * made[1]);
}

TEST_CASE("the search prices the schedules that are made in the end") {
  bool keeps = false, counts = false;
  for (const char *model : {"mmoe", "bert128", "resnet50", "controlflow"}) {
    CompileOptions options;
    options.inputPath = std::string(FUSEC_SOURCE_DIR) + "/models/tiny/" + model + ".onnx";
    options.targets = {"x86-64-v3", "sm_80", "gfx90a"};
    options.stopAfter = Stage::Schedule;
    options.inspect = [&](const CompileState &state) {
      for (const TargetState &target : state.targets) {
        INFO(model << " " << target.target.name);
        const double seconds = predictedSeconds(state.program, target);
        CHECK(seconds > 0);
        // A plan's sum is of multiples of 2^-50 s.
        CHECK_THAT(target.plan.seconds, Catch::Matchers::WithinRel(seconds, 1e-9) ||
                                            Catch::Matchers::WithinAbs(seconds, 0x1p-50));
        for (const std::vector<ScheduleVariant> &variants : target.schedules) {
          const Schedule &schedule = variants.back().schedule;
          keeps = keeps || !schedule.kept.empty();
          for (const TreeNode &node : schedule.tree)
            counts = counts || node.leaf(LeafKind::Counters);
        }
      }
      return success();
    };
    auto report = compile(options);
    INFO((report.ok() ? "" : format(report.errors()[0])));
    REQUIRE(report.ok());
  }
  CHECK(keeps);
  CHECK(counts);
}

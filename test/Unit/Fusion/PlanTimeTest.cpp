// Plans of ten thousand operations: the work grows with their number, whatever their shape, in under five seconds.
// The oracle here answers at once; what schedules cost is asked once a pattern, and networks repeat theirs.
#include "MapShapes.h"

#include <catch2/catch_all.hpp>
#include <ctime>

using namespace fusec;
using namespace fusec::test;

namespace {

struct Work {
  double seconds; // of the processor
  int asked = 0;
};

Work workFor(const Maps &maps) {
  const ExprProgram program = maps.program();
  Work work{};
  const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
    ++work.asked;
    return timeOf(pattern);
  };
  const std::clock_t start = std::clock();
  const Result<Plan> plan = buildPlan(program, *lookupTarget("sm_80"), oracle);
  work.seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  REQUIRE(plan.ok());
  CHECK(plan->steps.size() < static_cast<size_t>(maps.size()));
  return work;
}

} // namespace

TEST_CASE(
    "plan: ten thousand operations take work that grows with their number, and no long time") {
  for (const auto &[name, make] : kShapes) {
    INFO(name);
    const Work small = workFor(make(1000)), large = workFor(make(10000));
    WARN(name << ": " << large.seconds << " s, " << large.asked << " patterns asked, of 1000 "
              << small.seconds << " s, " << small.asked);
    CHECK(large.asked < 11 * small.asked);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    CHECK(large.seconds < 5);
#endif
  }
}

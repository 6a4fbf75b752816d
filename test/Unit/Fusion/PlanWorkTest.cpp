// Plans of ten thousand operations: the work grows with their number, whatever their shape. It is counted: patterns
// that are asked for, kernels that are weighed, and, for what has no counter of its own, allocations and their bytes.
// The oracle here answers at once; what schedules cost is asked once a pattern, and networks repeat theirs.
#include "../AllocationMeter.h"
#include "MapShapes.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

struct Work {
  int64_t asked = 0, quick = 0, accurate = 0;
  Allocations allocations;
};

Work workFor(const ExprProgram &program) {
  Work work{};
  const ScheduleOracle oracle = [&](const Pattern &pattern) -> Result<KernelTime> {
    ++work.asked;
    return timeOf(pattern);
  };
  meter = &work.allocations;
  const Result<Plan> plan = buildPlan(program, *lookupTarget("sm_80"), oracle);
  meter = nullptr;
  REQUIRE(plan.ok());
  work.quick = plan->evaluations.quick;
  work.accurate = plan->evaluations.accurate;
  CHECK(plan->steps.size() < program.items.size());
  return work;
}

/// RMSNorm and a product over and over: of every three equations the search asks whether a tree holds them
/// (Legality.h).
ExprProgram normalisedProducts(int operations) {
  std::string tensors, bodies, before = "x";
  for (int i = 0; i < operations / 3; ++i) {
    const std::string id = std::to_string(i);
    const bool isLast = i + 1 == operations / 3;
    tensors += "tensor %s" + id + ": f32[64] temp\ntensor %n" + id +
               ": f32[64,256] temp\ntensor %y" + id + ": f32[64,256] " +
               (isLast ? "output\n" : "temp\n");
    bodies += "reduction s" + id + " [i:64; k:256] sum f32\n  %s" + id + " = mul(%" + before +
              "[i, k], %" + before + "[i, k])\nmap n" + id + " [i:64, k:256]\n  %n" + id +
              " = div(%" + before + "[i, k], sqrt(%s" + id + "[i]))\nreduction y" + id +
              " [i:64, j:256; k:256] sum f32\n  %y" + id + " = mul(%n" + id + "[i, k], %w[k, j])\n";
    before = "y" + id;
  }
  return parse("expr products\ntensor %x: f32[64,256] input\ntensor %w: f32[256,256] input\n" +
               tensors + "inputs (%x, %w)\noutputs (%" + before + ")\n" + bodies);
}

void checkWork(const char *name, const Work &small, const Work &large) {
  INFO(name);
  CHECK(large.asked < 11 * small.asked);
  CHECK(large.quick < 11 * small.quick);
  CHECK(large.accurate < 11 * small.accurate);
  CHECK(large.allocations.count < 11 * small.allocations.count);
  CHECK(large.allocations.bytes < 11 * small.allocations.bytes);
}

} // namespace

TEST_CASE("plan: ten thousand operations take work that grows with their number") {
  for (const auto &[name, make] : kShapes)
    checkWork(name, workFor(make(1000).program()), workFor(make(10000).program()));
  checkWork("products", workFor(normalisedProducts(1000)), workFor(normalisedProducts(10000)));
}

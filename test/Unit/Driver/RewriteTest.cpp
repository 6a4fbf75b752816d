// Rewriting the kernels of the networks under models/tiny: no rule makes one move more, each application of a rule
// takes something away, and the rounds end.
#include "Gir/Rewrite.h"
#include "Driver/Pipeline.h"
#include "Driver/State.h"
#include "Expr/OpWeight.h"
#include "Gir/Passes.h"
#include "Gir/Traffic.h"
#include "Gir/Walk.h"
#include "Tiling/lower/Lower.h"

#include <catch2/catch_all.hpp>

#include <filesystem>
#include <map>
#include <set>

using namespace fusec;

namespace {

/// What rules take away: accesses to memory other than registers, and computations, by the kernel's text.
struct Size {
  int64_t global = 0, shared = 0;
  double work = 0;
};

Size sizeOf(const GirKernel &kernel) {
  Size size;
  auto access = [&](BufferId b) {
    if (b < 0)
      return;
    const MemLevel level = kernel.buffers[static_cast<size_t>(b)].level;
    size.global += level == MemLevel::Global;
    size.shared += level == MemLevel::Shared;
  };
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (writesBuffer(s))
      access(s.buffer);
    for (NodeId id : kernel.body.reachable(exprRoots(s))) {
      const Scalar &node = kernel.body[id];
      if (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
        access(node.index);
      size.work += weightOf(node.op);
    }
  });
  return size;
}

struct Found {
  int kernels = 0, rewritten = 0, rowsReadOnce = 0;
  std::set<std::string> changedBy; // names of rules
};

/// Rule by rule until none holds, and looks at each step.
void rewriteInSteps(GirKernel kernel, const RewriteLimits &limits, Found &found) {
  simplify(kernel);
  const ElementTraffic first = globalTraffic(kernel);
  bool any = false;
  int rounds = 0;
  for (bool changed = true; changed; ++rounds) {
    REQUIRE(rounds < 8);
    changed = false;
    for (const RewriteRule &rule : rewriteRules()) {
      const ElementTraffic before = globalTraffic(kernel);
      const Size size = sizeOf(kernel);
      if (!rule.run(kernel, limits))
        continue;
      changed = any = true;
      found.changedBy.emplace(rule.name);
      simplify(kernel);
      INFO(print(kernel));
      CHECK(isMonotone(before, globalTraffic(kernel)));
      const Size now = sizeOf(kernel);
      const bool less = now.work < size.work || now.global < size.global ||
                        (now.global == size.global && now.shared < size.shared);
      CHECK(less);
    }
  }
  ++found.kernels;
  found.rewritten += any;
  found.rowsReadOnce += globalTraffic(kernel).read < first.read;
}

} // namespace

TEST_CASE(
    "kernels of the tiny networks never move more after a rule of rewriting, and the rules end") {
  std::vector<std::string> models;
  for (const auto &entry :
       std::filesystem::directory_iterator(std::string(FUSEC_SOURCE_DIR) + "/models/tiny"))
    if (entry.path().extension() == ".onnx")
      models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  REQUIRE(models.size() >= 16);
  std::map<std::string, Found> found;
  for (const std::string &model : models) {
    CompileOptions options;
    options.inputPath = model;
    options.targets = {"x86-64-v4", "sm_90", "gfx90a"};
    options.stopAfter = Stage::Schedule;
    options.inspect = [&](const CompileState &state) {
      for (const TargetState &target : state.targets)
        for (size_t p = 0; p < target.plan.patterns.size(); ++p)
          for (const ScheduleVariant &variant : target.schedules[p]) {
            auto lowered = lowerSchedule(target.plan.patterns[p].program, variant.schedule,
                                         state.program.symbols);
            REQUIRE(lowered.ok());
            INFO(model << " " << target.target.name);
            CHECK((target.target.kind != TargetKind::Cpu || variant.schedule.kept.empty()));
            rewriteInSteps(lowered->kernel, rewriteLimits(target.target),
                           found[target.target.name]);
          }
      return success();
    };
    auto report = compile(options);
    INFO((report.ok() ? "" : format(report.errors()[0])));
    REQUIRE(report.ok());
  }
  for (const auto &[target, counts] : found) {
    INFO(target << ": " << counts.kernels << " kernels, " << counts.rewritten << " rewritten, "
                << counts.rowsReadOnce << " read less");
    CHECK(counts.kernels > 30);
    if (target == "x86-64-v4") { // whose threads keep nothing, since a core's first cache does
      CHECK(counts.rewritten == 0);
      continue;
    }
    CHECK(counts.rewritten >= 10);
    CHECK(counts.rowsReadOnce >= 10);
    // Not swap-moves and merge-moves: what they take away Expr's composition of maps has taken away before. They are
    // shown on a kernel by hand (test/Gir/move-chain.gir).
    CHECK(counts.changedBy ==
          std::set<std::string>{"merge-reads", "merge-write-read", "reuse-values"});
  }
}

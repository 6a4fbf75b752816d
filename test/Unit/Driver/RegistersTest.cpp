// The registers that a schedule is said to need beside those of its machine code.
#include "Codegen/Codegen.h"
#include "Driver/Pipeline.h"
#include "Driver/State.h"
#include "Gir/Passes.h"
#include "Tiling/candidates/ScheduleBuilder.h"
#include "Tiling/counts/OnChipStorage.h"
#include "Tiling/lower/Lower.h"
#include "Tiling/schedule/Schedule.h"

#include <catch2/catch_all.hpp>

#include <cstring>
#include <filesystem>

using namespace fusec;

namespace {

std::string findPtxas() {
  for (const char *path : {"/usr/local/cuda/bin/ptxas", "/usr/local/bin/ptxas", "/usr/bin/ptxas"})
    if (std::filesystem::exists(path))
      return path;
  return "";
}

/// The most of a cubin's entries, from its records (format 4, attribute 0x2f, 8 bytes: entry, registers).
uint32_t registersIn(const std::vector<uint8_t> &cubin) {
  constexpr uint8_t kRecord[] = {0x04, 0x2f, 0x08, 0x00};
  uint32_t most = 0;
  for (size_t at = 0; at + 12 <= cubin.size(); at += 4) {
    uint32_t registers = 0;
    std::memcpy(&registers, &cubin[at + 8], sizeof registers);
    if (std::memcmp(&cubin[at], kRecord, sizeof kRecord) == 0)
      most = std::max(most, registers);
  }
  return most;
}

} // namespace

// In kernels of several phases the assembler has more loads under way than a schedule is said to have registers for.
TEST_CASE(
    "stitched kernels of one phase need about the registers that their schedules are said to") {
  CodegenOptions codegen;
  codegen.ptxasPath = findPtxas();
  if (codegen.ptxasPath.empty())
    SKIP("no ptxas on this machine");
  int kernels = 0;
  for (const char *model : {"mmoe", "swin_b", "gpt2-decode"}) {
    CompileOptions options;
    options.inputPath = std::string(FUSEC_SOURCE_DIR) + "/models/tiny/" + model + ".onnx";
    options.targets = {"sm_90"};
    options.stopAfter = Stage::Schedule;
    options.inspect = [&](const CompileState &state) {
      const TargetState &target = state.targets[0];
      for (size_t p = 0; p < target.schedules.size(); ++p) {
        const ExprProgram &pattern = target.plan.patterns[p].program;
        const Schedule &schedule = target.schedules[p].back().schedule;
        const tiling::BoundSchedule bound(schedule, pattern);
        if (bound.program.equations.size() < 3 || bound.phases().size() > 1)
          continue;
        auto lowered = lowerAndRewrite(pattern, schedule, state.program.symbols, target.target);
        REQUIRE(lowered.ok());
        GirKernel &kernel = lowered->kernel;
        simplify(kernel);
        insertSyncs(kernel);
        allocate(kernel);
        auto images = compileKernels({kernel}, target.target, codegen);
        REQUIRE(images.ok());
        REQUIRE(images->front().format == CodeImage::Format::Cubin);
        const double estimate = tiling::storageOf(bound).registersPerThread;
        const double counted = registersIn(images->front().bytes);
        INFO(model << "\n" << print(schedule, pattern) << print(kernel));
        CHECK(double(tiling::roundUp(int64_t(estimate), 8)) >=
              counted); // a warp gets 8 a lane at a time
        CHECK(estimate <= 2 * counted);
        ++kernels;
      }
      return success();
    };
    REQUIRE(compile(options).ok());
  }
  CHECK(kernels >= 3);
}

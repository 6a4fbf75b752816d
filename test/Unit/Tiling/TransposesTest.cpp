// Maps that are read along one axis and written along another: tiles of vectors that are stored as columns.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"
#include "Tiling/counts/LaneAccess.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string transpose(const std::string &type, int64_t batch, int64_t rows, int64_t columns) {
  const std::string n = std::to_string(batch), r = std::to_string(rows),
                    c = std::to_string(columns);
  return "expr t\ntensor %x: " + type + "[" + n + "," + r + "," + c +
         "] input\ntensor %y: " + type + "[" + n + "," + c + "," + r +
         "] output\ninputs (%x)\noutputs (%y)\nmap y [n:" + n + ", c:" + c + ", r:" + r +
         "]\n  %y = %x[n, r, c]\n";
}

} // namespace

TEST_CASE("transposes: all candidates give the right numbers") {
  check(transpose("f32", 1, 64, 48));
  check(transpose("f32", 3, 37, 21));
  check(transpose("f16", 2, 24, 9));
}

TEST_CASE("transposes: a CPU stores columns, with an access a vector") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"})
    for (const char *type : {"f32", "f16", "u8", "i64"})
      for (const auto &[rows, columns] : {std::pair{3136, 96}, {96, 3136}, {777, 333}}) {
        INFO(name << ' ' << type << ' ' << rows << ' ' << columns);
        const Target target = targetNamed(name);
        const ExprProgram pattern = patternFrom(transpose(type, 1, rows, columns));
        const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
        CHECK(best.schedule.name == "transpose");
        const cost::Counts counts = countWork({best.schedule, pattern}, target).front();
        CHECK(counts.gathers == 0);
        const double vectors = double(rows) * columns / target.lanes / counts.blocks;
        CHECK(counts.vectorLoads <= 3.5 * vectors); // half as many turns as lanes, and cut tiles
      }
}

TEST_CASE("transposes: two dimensions that an index is taken apart for are one") {
  // What a convolution in groups of four leaves, as its channels are read.
  const ExprProgram pattern =
      patternFrom("expr t\ntensor %x: f32[3136,24,4] input\ntensor %y: f32[96,3136] output\n"
                  "inputs (%x)\noutputs (%y)\nmap y [c:96, i:3136]\n"
                  "  %y = %x[i, floordiv(c, 4), floormod(c, 4)]\n");
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Schedule best = valueOf(bestSchedules(pattern, targetNamed(name))).back().schedule;
    CHECK(best.name == "transpose");
    CHECK(countWork({best, pattern}, targetNamed(name)).front().gathers == 0);
  }
  check("expr t\ntensor %x: f32[19,3,4] input\ntensor %y: f32[12,19] output\ninputs (%x)\noutputs "
        "(%y)\n"
        "map y [c:12, i:19]\n  %y = %x[i, floordiv(c, 4), floormod(c, 4)]\n");
}

namespace {

/// y[n, c, r] = f(x[n, r, c], z[n, c, r])
std::string residual(const std::string &type, int64_t batch, int64_t rows, int64_t columns,
                     const std::string &value) {
  const std::string n = std::to_string(batch), r = std::to_string(rows),
                    c = std::to_string(columns), out = type + "[" + n + "," + c + "," + r + "]";
  return "expr t\ntensor %x: " + type + "[" + n + "," + r + "," + c +
         "] input\ntensor %w: " + type + "[" + n + "," + r + "," + c +
         "] input\ntensor %z: " + out + " input\ntensor %y: " + out +
         " output\ninputs (%x, %w, %z)\noutputs (%y)\nmap y [n:" + n + ", c:" + c + ", r:" + r +
         "]\n  %y = " + value + "\n";
}

} // namespace

TEST_CASE("transposes: reads as columns beside reads as they are") {
  check(residual("f32", 1, 64, 48, "add(%x[n, r, c], %z[n, c, r])"));
  check(residual("f16", 3, 37, 21, "add(%x[n, r, c], %z[n, c, r])"));
  check(residual("f32", 2, 19, 70, "max(add(add(%x[n, r, c], %w[n, r, c]), %z[n, c, r]), 0.0)"));
}

TEST_CASE("transposes: a CPU turns what fewer accesses want") {
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    const Target target = targetNamed(name);
    const auto counts = [&](const std::string &value) {
      const ExprProgram pattern = patternFrom(residual("f32", 1, 3136, 96, value));
      const ScheduleVariant best = valueOf(bestSchedules(pattern, target)).back();
      INFO(name << ' ' << value);
      CHECK(best.schedule.name == "transpose");
      const cost::Counts work = countWork({best.schedule, pattern}, target).front();
      CHECK(work.gathers == 0);
      const double vectors = 3136.0 * 96 / target.lanes / work.blocks;
      return std::pair{work.vectorLoads / vectors, work.vectorOps / vectors};
    };
    const double shuffles = target.lanes == 8 ? 3 : 4, cut = 1.1; // tiles at the edges
    // Vectors of x are turned; z and y lie as they are wanted.
    const auto [oneLoads, oneOps] = counts("add(%x[n, r, c], %z[n, c, r])");
    CHECK(oneLoads <= 3 * cut);
    CHECK(oneOps <= (1 + shuffles) * cut);
    // Two that lie along c, and y along r: that is turned.
    const auto [twoLoads, twoOps] = counts("add(%x[n, r, c], %w[n, r, c])");
    CHECK(twoLoads <= 3 * cut);
    CHECK(twoOps <= (1 + shuffles) * cut);
  }
}

TEST_CASE("transposes: what lies side by side on both sides keeps its order") {
  const Target target = targetNamed("x86-64-v3");
  const ExprProgram heads = patternFrom(R"(expr heads
tensor %x: f32[128,12,64] input
tensor %y: f32[12,128,64] output
inputs (%x)
outputs (%y)
map y [h:12, s:128, d:64]
  %y = %x[s, h, d]
)");
  CHECK(valueOf(bestSchedules(heads, target)).back().schedule.name == "map");
}

TEST_CASE("transposes: a CPU's stage across goes in squares, where rows divide it") {
  // The keys of attention: contiguous along k, kept along j.
  const ExprProgram scores = patternFrom(
      ProgramText("scores", {})
          .input("q", "12,64,32")
          .input("x", "12,128,32")
          .reduction("y", "h:12, i:64, j:128; k:32", "sum", "mul(%q[h, i, k], %x[h, j, k])"));
  const Target target = targetNamed("x86-64-v4");
  bool any = false;
  for (const Schedule &schedule : valueOf(candidateSchedules(scores, target))) {
    const tiling::BoundSchedule bound(schedule, scores);
    for (const Operand &operand : schedule.operands) {
      const std::vector<int64_t> square = {32, 32};
      if (operand.level != MemLevel::Shared || operand.digits.size() != 2 ||
          tiling::copyOrder(bound, operand, square).digits[0] != 0)
        continue;
      any = true;
      const auto loads = [&](int64_t columns) {
        return tiling::loadsOfStage(bound, operand, {32, columns}, target);
      };
      CHECK(loads(32) == 64 * (1 + 1 + 4)); // vectors: a load, a store and log2(16) shuffles
      CHECK(loads(22) == 44 + 64 + 44 * 4); // two rows of 11 in place of 16
      CHECK(loads(3) == 6 + 96 * 1.5 * 2);  // lane by lane, in which time two vectors are loaded
    }
  }
  CHECK(any);
}

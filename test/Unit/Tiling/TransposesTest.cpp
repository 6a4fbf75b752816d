// Maps that are read along one axis and written along another: tiles of vectors that are stored as columns.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"

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
        const cost::Counts counts = countWork(best.schedule, pattern, target).front();
        CHECK(counts.gathers == 0);
        const double vectors = double(rows) * columns / target.lanes / counts.blocks;
        CHECK(counts.vectorLoads <= 3.5 * vectors); // half as many turns as lanes, and cut tiles
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

// Windows and copies at borders, which ask once for all of their terms or places: the same numbers, to the last bit.
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Kernels of all of a CPU's schedules that the pass changes, run at several widths against themselves before it.
int splitAlike(const std::string &text, const std::vector<int64_t> &widths) {
  const ExprProgram pattern = patternFrom(text);
  int split = 0;
  for (const char *target : {"x86-64-v3", "x86-64-v4"})
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, targetNamed(target)))) {
      INFO(print(schedule, pattern));
      LoweredKernel lowered = valueOf(lowerSchedule(pattern, schedule, pattern.symbols));
      GirKernel &kernel = lowered.kernel;
      rewrite(kernel, {}); // a CPU's threads keep nothing
      const std::string before = print(kernel);
      LoweredKernel whole = lowered;
      splitBorders(kernel);
      split += print(kernel) != before;
      for (LoweredKernel *each : {&whole, &lowered}) {
        insertSyncs(each->kernel);
        allocate(each->kernel);
        require(verify(each->kernel));
      }
      for (int64_t n : widths) {
        const std::vector<TensorValue> inputs = randomInputs(pattern, {n});
        CHECK(difference(runKernel(lowered, pattern, schedule, inputs, {n}),
                         runKernel(whole, pattern, schedule, inputs, {n}), 0) == "");
        CHECK(difference(runKernel(lowered, pattern, schedule, inputs, {n}),
                         valueOf(evaluate(pattern, inputs)), 1e-5) == "");
      }
    }
  return split;
}

std::string window(const std::string &monoid, const std::string &value) {
  return ProgramText("window", "symbol n = 1..400 opt 100 divisor 1\n")
      .input("x", "9,n")
      .input("f", "3,3")
      .reduction("y", "i:9, j:n; r:3, q:3", monoid, value);
}

std::string inside(const std::string &row, const std::string &column) {
  return "and(and(and(le(0, " + row + "), le(" + row + ", 8)), le(0, " + column + ")), lt(" +
         column + ", dim(n)))";
}

} // namespace

TEST_CASE("borders: windows have the same bits in the middle, at the border and behind it") {
  const std::vector<int64_t> widths = {1, 2, 15, 17, 64, 131, 300};
  const std::string plain = inside("i + r - 1", "j + q - 1");
  CHECK(splitAlike(window("max", "if(" + plain + ", %x[i + r - 1, j + q - 1], -inf)"), widths) > 0);
  CHECK(splitAlike(window("sum", "if(" + plain + ", %x[i + r - 1, j + q - 1], 0.0)"), widths) > 0);
  // Two steps apart, and backwards.
  const std::string apart = inside("i + r*2 - 2", "j + q*-2 + 2");
  CHECK(splitAlike(window("min", "if(" + apart + ", %x[i + r*2 - 2, j + q*-2 + 2], inf)"), widths) >
        0);
  // Products keep all of their terms; most schedules copy the window first.
  splitAlike(window("sum", "mul(if(" + plain + ", %x[i + r - 1, j + q - 1], 0.0), %f[r, q])"),
             widths);
  // A product under a condition is rounded before it is summed, wherever it stands.
  splitAlike(window("sum", "select(lt(j + q, dim(n)), mul(%x[i, j], %f[r, q]), 0.0)"), widths);
}

TEST_CASE("borders: copies that a border reflects or holds") {
  const auto copy = [](const std::string &place) {
    return std::string(ProgramText("copy", "symbol n = 4..400 opt 100 divisor 1\n")
                           .input("x", "5,n")
                           .map("y", "i:5, j:n + 6", "%x[i, " + place + "]"));
  };
  const std::vector<int64_t> widths = {4, 10, 16, 58, 131, 300};
  CHECK(splitAlike(copy("min(max(j - 3, j*-1 + 3), max(j - 3, j*-1 + 3)*-1 + dim(n*2 - 2))"),
                   widths) > 0);
  CHECK(splitAlike(copy("min(max(j - 3, 0), dim(n - 1))"), widths) > 0);
}

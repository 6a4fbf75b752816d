// A contraction behind reductions of its rows: every schedule gives the numbers of the equations as they are, to the
// last bit where no rounding happens.
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// RMSNorm of the rows of x in front of a product with w.
std::string normalised(const std::string &rows, const std::string &terms,
                       const std::string &columns) {
  return ProgramText("rms", kSymbols)
      .input("x", rows + "," + terms)
      .input("g", terms)
      .input("w", terms + "," + columns)
      .reduction("s", "i:" + rows + "; k:" + terms, "sum", "mul(%x[i, k], %x[i, k])")
      .map("n", "i:" + rows + ", k:" + terms,
           "mul(div(%x[i, k], sqrt(div(%s[i], " + terms + ".0))), %g[k])")
      .reduction("y", "i:" + rows + ", j:" + columns + "; k:" + terms, "sum",
                 "mul(%n[i, k], %w[k, j])");
}

/// Elements of row i are plus or minus 2^(i mod 4). The root of the mean square is that power itself, the quotients are
/// 1 or -1, and g and w hold small whole numbers: no step of any order rounds, so that a row, a term or an element too
/// much or too little shows.
std::vector<TensorValue> inputsWithoutRounding(const ExprProgram &pattern,
                                               const std::vector<int64_t> &symbols) {
  std::vector<TensorValue> inputs = randomInputs(pattern, symbols);
  TensorValue &x = inputs[0];
  for (int64_t at = 0; at < x.numElements(); ++at)
    x.setNumber(at, std::ldexp(x.number(at) < 0 ? -1 : 1, at / x.dims[1] % 4));
  return inputs;
}

void checkNormalised(const std::string &rows, const std::string &terms, const std::string &columns,
                     const std::vector<int64_t> &symbols = {64}) {
  ExprProgram pattern = patternFrom(normalised(rows, terms, columns));
  INFO(rows << " " << terms << " " << columns);
  checkCandidates(pattern, inputsWithoutRounding(pattern, symbols), symbols, 0, 1);
}

} // namespace

TEST_CASE("candidates: a contraction of normalised rows") {
  for (const char *rows : {"1", "5", "64", "70"})
    for (const char *columns : {"3", "64", "133"})
      checkNormalised(rows, "203", columns);
  checkNormalised("5", "7", "40");
  checkNormalised("n", "40", "96", {37});
  checkNormalised("n", "40", "96", {64});
}

TEST_CASE("a pattern that has schedules by an alternative alone has them in every search") {
  // Vectors would go along j, which is the outer axis of both operands, and the map has its axes otherwise.
  const ExprProgram pattern =
      patternFrom(ProgramText("turned", {})
                      .input("x", "4,1,16,16")
                      .input("w", "4,16,48")
                      .reduction("s", "h:4, b:1, i:16, j:16; k:16", "sum",
                                 "mul(%x[h, 0, i, k], %w[h, j, k + 16])")
                      .map("y", "b:1, h:4, o:1, i:16, j:16", "add(%s[h, 0, i, j], 1.0)"));
  ScheduleSearch quick;
  quick.thorough = false;
  const auto variants = valueOf(bestSchedules(pattern, targetNamed("x86-64-v3"), {}, quick));
  REQUIRE(!variants.empty());
  CHECK(!variants.back().schedule.via.empty());
}

TEST_CASE("candidates: rows of two axes, two results for each, stored weights") {
  // Whole numbers alone: small enough that their products' sums are exact.
  ExprProgram pattern =
      patternFrom(ProgramText("two")
                      .input("x", "3,7,50")
                      .input("v", "3,7,50")
                      .input("w", "50,40")
                      .reduction("s", "h:3, i:7; k:50", "sum", "mul(%x[h, i, k], %x[h, i, k])")
                      .reduction("m", "h:3, i:7; k:50", "max", "abs(%v[h, i, k])")
                      .reduction("y", "h:3, i:7, j:40; k:50", "sum",
                                 "mul(mul(mul(%x[h, i, k], %m[h, i]), %s[h, i]), %w[k, j])"));
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0, 1);
  fix(pattern, "w");
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0, 1);
}

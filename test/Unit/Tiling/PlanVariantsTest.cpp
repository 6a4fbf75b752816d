// How many schedules the kernels of a plan get: as what each loses weighs beside all others.
#include "Tiling/search/PlanVariants.h"
#include "Candidates.h"
#include "Support/TunedSizes.h"

using namespace fusec;
using namespace fusec::test;

namespace {

const ExprProgram &pattern() {
  static const ExprProgram rows =
      patternFrom(ProgramText("p", "symbol n = 1..99999 opt length divisor 1\n")
                      .input("a", "n,64")
                      .map("y", "i:n, j:64", "neg(%a[i, j])"));
  return rows;
}

/// Schedules that take these seconds at n of 1, 8, 128 and 512.
PlannedPattern planned(std::vector<std::vector<double>> seconds, int launches = 1) {
  PlannedPattern out{&pattern(), {}, launches};
  for (size_t s = 0; s < seconds.size(); ++s) {
    out.schedules.found.emplace_back(1);
    out.schedules.found.back()[0].schedule.name = std::to_string(s);
  }
  out.schedules.sizes = tunedSizes(pattern().symbols);
  out.schedules.features = {DimExpr::symbol(0)};
  out.schedules.table = {out.schedules.sizes, std::move(seconds), {}};
  out.schedules.rows = {0, 1, 2, 3};
  return out;
}

/// The names of a pattern's schedules, in the order in which guards are asked.
std::string names(const std::vector<ScheduleVariant> &variants) {
  std::string text;
  for (const ScheduleVariant &variant : variants)
    text += variant.schedule.name;
  return text;
}

const std::vector<std::vector<double>> kSteep = {{1, 8, 60, 240}, {3, 6, 40, 160}};

} // namespace

TEST_CASE("plan variants: a kernel alone has the schedules that its sizes ask for") {
  CHECK(names(planVariants({planned(kSteep)})[0]).size() == 2);
  CHECK(names(planVariants({planned({{1, 8, 60, 240}, {1.04, 7.8, 60, 240}})})[0]).size() == 1);
}

TEST_CASE("plan variants: what a kernel loses is weighed by all that runs") {
  const auto chosen = planVariants({planned(kSteep), planned({{100, 100, 100, 9999}})});
  // Fast where the other one takes little.
  CHECK(names(chosen[0]) == "1");
  CHECK(names(chosen[1]) == "0");
  CHECK(names(planVariants({planned(kSteep), planned({{9999, 9999, 9999, 9}})})[0]) == "1");
  CHECK(names(planVariants({planned(kSteep), planned({{1, 999, 9999, 9999}})})[0]) == "0");
}

TEST_CASE("plan variants: launches count, and what many kernels lose adds up") {
  const PlannedPattern other = planned({{20, 200, 2000, 8000}});
  CHECK(names(planVariants({planned(kSteep), other})[0]).size() == 1);
  CHECK(names(planVariants({planned(kSteep, 10), other})[0]).size() == 2);
  std::vector<PlannedPattern> many(10, planned(kSteep));
  many.push_back(other);
  const auto chosen = planVariants(many);
  size_t schedules = 0;
  double lost = 0; // at n = 512
  for (size_t p = 0; p < 10; ++p) {
    schedules += chosen[p].size();
    if (names(chosen[p]) == "0")
      lost += 80;
  }
  CHECK(schedules > 10);
  CHECK(schedules < 20);
  CHECK(lost <= (tiling::kMostSlower - 1) * 9600);
}

TEST_CASE("plan variants: plans for other sizes are others") {
  PlannedPattern elsewhere = planned({{9999, 9999, 9999, 9999}});
  elsewhere.schedules.sizes.back()[0] = 999;
  CHECK(names(planVariants({planned(kSteep), elsewhere})[0]).size() == 2);
}

TEST_CASE("plan variants: a schedule for some sizes alone leaves the others to one that it has") {
  PlannedPattern one = planned({{5, 8, 60, 240}, {1, 6, 40, 160}});
  one.schedules.found[1][0].schedule.via = {{std::string(kSizeMost), 512}};
  const auto variants = planVariants({one})[0];
  CHECK(names(variants) == "10");
  CHECK(variants.back().guards.empty());
}

// Which equations one walk over the terms of a contraction serves.
#include "Expr/SharedWalk.h"
#include "Cascades.h"
#include "Expr/Alternatives.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::vector<const Equation *> equationsOf(const ExprProgram &p) {
  std::vector<const Equation *> out;
  for (const Item &item : p.items)
    out.push_back(&std::get<Equation>(item.value));
  return out;
}

/// A sum of rows as wide as `terms`, a product whose first factor is given, and a map that puts both together.
ExprProgram walkWith(const std::string &terms, const std::string &sum, const std::string &finish,
                     const std::string &factor = "%x[i, k]") {
  return parse(ProgramText("walk")
                   .input("x", "5,37")
                   .input("u", "5,36")
                   .input("w", "37,5")
                   .input("g", "37")
                   .reduction("s", "i:5; k:" + terms, "sum", sum)
                   .reduction("t", "i:5, j:5; k:37", "sum", "mul(" + factor + ", %w[k, j])")
                   .map("y", "i:5, j:5", finish));
}

const std::string kSquares = "mul(%x[i, k], %x[i, k])";

} // namespace

TEST_CASE(
    "a sum of rows, a contraction over the same terms and a map that joins them share a walk") {
  const ExprProgram p = walkWith("37", kSquares, "mul(%t[i, j], %s[i])");
  const std::optional<SharedWalk> walk = sharedWalk(equationsOf(p));
  REQUIRE(walk);
  CHECK(walk->rows == std::vector<int>{0});
  CHECK(walk->contraction == 1);
  CHECK(walk->finish == 2);
  CHECK(!sharedWalk(equationsOf(walkWith("37", kSquares, "mul(%t[i, j], %s[j])"))));
  CHECK(!sharedWalk(equationsOf(walkWith("37", kSquares, "mul(%t[j, i], %s[i])"))));
  CHECK(!sharedWalk(
      equationsOf(walkWith("37", kSquares, "mul(%t[i, j], if(lt(0, i), %s[i - 1], 0.0))"))));
  CHECK(!sharedWalk(equationsOf(walkWith("36", "%u[i, k]", "mul(%t[i, j], %s[i])"))));
  CHECK(!sharedWalk(equationsOf(walkWith("5", "%w[k, i]", "mul(%t[i, j], %s[i])"))));
}

TEST_CASE("what the columns share of the terms becomes a map, and every bit stays") {
  const std::vector<Rewrite> rewrites = {{"shared-factor"}};
  const ExprProgram p =
      walkWith("37", kSquares, "mul(%t[i, j], %s[i])", "mul(%x[i, k], sub(%g[k], 1.0))");
  const std::optional<ExprProgram> made = rewritten(p, rewrites);
  REQUIRE(made);
  requireValid(*made);
  const std::string text = print(*made, nullptr);
  CHECK(text.find("map t.factor [i:5, k:37]\n  %t.factor = mul(%x[i, k], sub(%g[k], 1.0))\n") !=
        std::string::npos);
  CHECK(text.find("%t = mul(%t.factor[i, k], %w[k, j])\n") != std::string::npos);
  std::mt19937 random(5);
  const std::vector<TensorValue> inputs = inputsOf(p, random);
  CHECK((*evaluate(*made, inputs))[0].floats == (*evaluate(p, inputs))[0].floats);
  const std::optional<SharedWalk> walk = sharedWalk(equationsOf(*made));
  REQUIRE(walk);
  CHECK(walk->factor == 1);
  CHECK(walk->factorAxes == std::vector<int>{0, 2});
  CHECK(!rewritten(*made, rewrites));
  CHECK(!rewritten(walkWith("37", kSquares, "mul(%t[i, j], %s[i])"), rewrites));
  // Computed for every column.
  CHECK(!rewritten(walkWith("37", kSquares, "mul(%t[i, j], %s[i])", "add(%x[i, k], %u[j, 0])"),
                   rewrites));
}

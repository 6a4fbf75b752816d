// What an element of a result needs, as the papers' examples state it.
#include "ProgramTools.h"

#include "Expr/Rows.h"
#include "Expr/transforms/Profile.h"

using namespace fusec;
using namespace fusec::test;

namespace {

const char *const kFigure2 = R"(expr figure2
tensor %I0: f32[64,64] input
tensor %W0: f32[64,64] input
tensor %O0: f32[64,64] temp
tensor %O1: f32[64,64] output
inputs (%I0, %W0)
outputs (%O1)
reduction O0 [i:64, j:64; rk:64] sum f32
  %O0 = mul(%I0[i, rk], %W0[rk, j])
map O1 [i:64, j:64]
  %O1 = div(1.0, add(1.0, exp(neg(%O0[i, j]))))
)";

} // namespace

TEST_CASE(
    "relations: a product needs rows and columns, a sigmoid its own element (Souffle Fig. 2)") {
  const ExprProgram p = parse(kFigure2);
  const Equation &te0 = equation(p, 0), &te1 = equation(p, 1);
  auto facts = [&](const Equation &e) {
    std::map<std::string, uint64_t> own;
    for (auto [tensor, axes] : rowFacts(e).ownRows)
      own[p.tensors[tensor].name] = axes;
    return own;
  };
  // O0[i,j] -> I0[i,rk], W0[rk,j] for all rk: one relies on many.
  CHECK(facts(te0) == std::map<std::string, uint64_t>{{"I0", 0b01}, {"W0", 0b10}});
  CHECK(isContraction(te0));
  // O1[i,j] -> O0[i,j]: one relies on one, so that it finishes the product.
  CHECK(facts(te1) == std::map<std::string, uint64_t>{{"O0", 0b11}});
  CHECK(finishesReduction(te0, te1));
}

TEST_CASE("relations: a broadcast, a product and a sum are a matrix product (PowerFusion)") {
  const ExprProgram parts = parse(R"(expr parts
tensor %a: f32[8,16] input
tensor %b: f32[16,4] input
tensor %wide: f32[8,16,4] temp
tensor %p: f32[8,16,4] temp
tensor %c: f32[8,4] output
inputs (%a, %b)
outputs (%c)
map wide [i:8, k:16, j:4]
  %wide = %a[i, k]
map p [i:8, k:16, j:4]
  %p = mul(%wide[i, k, j], %b[k, j])
reduction c [i:8, j:4; k:16] sum f32
  %c = %p[i, k, j]
)");
  const ExprProgram whole = compose(parts);
  requireValid(whole);
  REQUIRE(whole.items.size() == 1);
  CHECK(body(whole, 0) == "%c = mul(%a[i, k], %b[k, j])");
  CHECK(isContraction(equation(whole, 0)));
  std::mt19937 random(1);
  const std::vector<TensorValue> inputs = randomInputs(parts, {}, random);
  CHECK(sameBits(run(parts, inputs), run(whole, inputs)));
}

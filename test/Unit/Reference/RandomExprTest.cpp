// The Graph interpreter in float64 against the equations that a graph is lowered to, on random graphs.
#include "Expr/Lower.h"
#include "Expr/Passes.h"
#include "Reference/ExprInterpreter.h"
#include "Reference/GraphInterpreter.h"
#include "Reference/RandomGraph.h"

#include <catch2/catch_all.hpp>

using namespace fusec;

namespace {

constexpr uint64_t kSeeds = 2000;

std::string firstError(const Diagnostics &errors) { return format(errors[0]); }

/// Compares `program` with the graph's own results; text of the difference, empty if none.
std::string difference(const RandomGraph &r, const ExprProgram &program,
                       const std::vector<TensorValue> &inputs,
                       const std::vector<TensorValue> &expected) {
  Status status = verify(program);
  if (!status.ok())
    return firstError(status.errors());
  auto actual = evaluate(program, inputs);
  if (!actual.ok())
    return firstError(actual.errors());
  return compareOutputs(r, expected, *actual);
}

} // namespace

TEST_CASE("equations compute what their graph computes, before and after every pass") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomGraph r = makeRandomGraph(seed);
    auto symbols = randomSymbolValues(r.graph, seed);
    auto inputs = randomInputs(r.graph, symbols, seed);
    auto expected = evaluate(r.graph, inputs);
    REQUIRE(expected.ok());
    auto program = lowerGraph(r.graph);
    INFO("seed " << seed);
    INFO((program.ok() ? "" : firstError(program.errors())));
    REQUIRE(program.ok());
    CHECK(difference(r, *program, inputs, *expected) == "");
    ExprProgram current = std::move(*program);
    for (const Pass<ExprProgram> &pass : exprPasses()) {
      REQUIRE(pass.run(current).ok());
      INFO("after " << pass.name);
      CHECK(difference(r, current, inputs, *expected) == "");
    }
  }
}

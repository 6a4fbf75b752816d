// Sizes that the model's own nodes compute from shapes: what the importer makes of them, as expressions or as programs
// of the host, against the interpreter, which runs the nodes.
#include "RandomSizes.h"

#include "Reference/GraphInterpreter.h"
#include "Support/DimProgram.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Empty where all lengths are what the nodes say, for inputs of these sizes.
std::string difference(const Graph &graph, int64_t n, int64_t m, int64_t k) {
  const std::vector<TensorValue> inputs{TensorValue(DType::F32, {n, m, 3}),
                                        TensorValue(DType::F32, {k})};
  GraphInterpreterOptions options;
  options.roundEachValue = true;
  const auto outputs = evaluate(graph, inputs, options);
  if (!outputs.ok())
    return format(outputs.errors().front());
  for (size_t i = 0; i + 1 < outputs->size(); ++i) {
    const std::string &name = graph.value(graph.body.outputs[i]).name;
    const TensorValue &size = (*outputs)[i + 1];
    if (name[0] == 'y' && (*outputs)[i].dims != size.ints)
      return name + " has " + std::to_string((*outputs)[i].dims[0]) + " elements, its size is " +
             std::to_string(size.ints[0]);
  }
  return "";
}

} // namespace

TEST_CASE("500 random programs over sizes agree with the interpreter") {
  constexpr uint64_t kFirstSeed = 20261126;
  constexpr int kModels = 20, kPrograms = 25;
  ImportOptions options;
  options.evaluator = referenceEvaluator();
  size_t computed = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kModels; ++seed) {
    INFO("seed " << seed);
    const auto graph = RandomSizes(seed, kPrograms, true).m.import(options);
    REQUIRE((graph.ok() ? "" : outcome(graph)) == "");
    computed += graph->symbols.size() - numGiven(graph->symbols);
    ConstantStore store;
    const std::string text = print(*graph, &store);
    const auto again = parseGraph(text, "dump", store);
    REQUIRE((again.ok() ? "" : outcome(again)) == "");
    CHECK(print(*again, &store) == text);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 5; ++round) {
      const auto n = static_cast<int64_t>(random() % 40), m = static_cast<int64_t>(random() % 9),
                 k = static_cast<int64_t>(random() % 60);
      INFO("n " << n << ", m " << m << ", k " << k);
      CHECK(difference(*again, n, m, k) == "");
    }
  }
  CHECK(computed > 100); // or the test would say nothing of programs
}

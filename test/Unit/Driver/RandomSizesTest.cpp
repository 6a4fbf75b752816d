// Compiled models whose sizes follow from shapes by random programs, from the model's file to the runtime, against the
// interpreter, which runs the nodes.
#include "../Onnx/RandomSizes.h"
#include "RunBundle.h"

#include "Driver/Pipeline.h"
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Empty where all outputs are equal.
std::string difference(const Graph &graph, const std::string &bundle, std::mt19937_64 &random) {
  std::vector<TensorValue> inputs{TensorValue(DType::F32, {static_cast<int64_t>(random() % 40),
                                                           static_cast<int64_t>(random() % 9), 3}),
                                  TensorValue(DType::F32, {static_cast<int64_t>(random() % 60)})};
  for (TensorValue &t : inputs)
    for (double &v : t.floats)
      v = static_cast<double>(random() % 1000);
  GraphInterpreterOptions options;
  options.roundEachValue = true;
  const auto expected = evaluate(graph, inputs, options);
  if (!expected.ok())
    return format(expected.errors().front());
  std::vector<TensorValue> actual;
  if (std::string error = runBundle(bundle, "host", inputs, actual); !error.empty())
    return error;
  for (size_t i = 0; i < expected->size(); ++i) {
    const TensorValue &wanted = (*expected)[i], &made = actual[i];
    if (made.dims != wanted.dims || made.floats != wanted.floats || made.ints != wanted.ints)
      return graph.value(graph.body.outputs[i]).name + " differs, of " +
             std::to_string(wanted.numElements()) + " elements";
  }
  return "";
}

} // namespace

TEST_CASE("compiled models compute 500 random programs over sizes as the interpreter", "[sizes]") {
  constexpr uint64_t kFirstSeed = 20261126;
  constexpr int kModels = 20, kPrograms = 25;
  Scratch scratch;
  ImportOptions importing;
  importing.evaluator = referenceEvaluator();
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kModels; ++seed) {
    INFO("seed " << seed);
    const RandomSizes made(seed, kPrograms, false);
    const auto graph = made.m.import(importing);
    REQUIRE((graph.ok() ? "" : outcome(graph)) == "");
    CompileOptions options;
    options.inputPath = scratch.path / "model.onnx";
    options.outputPath = scratch.path / "bundle";
    options.targets = {"host"};
    options.plan.mode = SearchMode::Full;
    {
      std::ofstream out(options.inputPath, std::ios::binary);
      made.m.model.SerializeToOstream(&out);
    }
    const auto report = compile(options);
    REQUIRE((report.ok() ? "" : format(report.errors()[0])) == "");
    std::mt19937_64 random(seed);
    for (int round = 0; round < 5; ++round)
      CHECK(difference(*graph, options.outputPath, random) == "");
  }
}

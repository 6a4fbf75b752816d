// Random models whose sizes are open and computed by their nodes, from the model's file to the runtime, with no option
// for a size. The interpreter runs the graph that the model was written from: it knows nothing of the importer.
#include "../Onnx/WriteModel.h"
#include "RunBundle.h"

#include "Driver/Pipeline.h"
#include "Driver/State.h"
#include "Reference/GraphInterpreter.h"
#include "Reference/RandomGraph.h"

#include <catch2/catch_all.hpp>

#include <cstdlib>
#include <iostream>

using namespace fusec;
using namespace fusec::test;

namespace {

using Sizes = std::vector<int64_t>;

std::string told(const RandomGraph &random, const Sizes &sizes) {
  std::string text = " at";
  for (size_t s = 0; s < sizes.size(); ++s)
    text += " " + random.graph.symbols[s].name + " = " + std::to_string(sizes[s]);
  return text;
}

/// Five sizes, the smallest among them, and an earlier one again.
std::vector<Sizes> sizesOf(const RandomGraph &random, uint64_t seed) {
  Sizes least;
  for (const Symbol &s : random.graph.symbols)
    least.push_back(s.min);
  if (random.oneOr)
    least[static_cast<size_t>(random.oneOr->symbol)] =
        least[static_cast<size_t>(random.oneOr->other)];
  std::vector<Sizes> all;
  for (uint64_t i = 0; i < 4; ++i)
    all.push_back(randomSymbolValues(random, seed * 8 + i));
  all.insert(all.begin() + 1, least);
  all.push_back(all[2]);
  return all;
}

/// The same with sizes that the graph was not made for, where it has a range that begins beyond 0: the first of these
/// is too small, or all are.
std::string differenceBelow(RandomGraph random, Sizes sizes, uint64_t seed, LoadedBundle &bundle) {
  bool isBelow = false;
  for (size_t s = 0; s < sizes.size(); ++s) {
    Symbol &symbol = random.graph.symbols[s];
    if (symbol.min > 0 && (!isBelow || seed % 2)) {
      sizes[s] = symbol.min - 1;
      isBelow = true;
    }
    symbol.min = 0;
  }
  if (!isBelow)
    return "";
  const auto inputs = randomInputs(random.graph, sizes, seed);
  std::vector<TensorValue> actual;
  const std::string refused = bundle.run(inputs, actual);
  const auto expected = evaluate(random.graph, inputs);
  if (!refused.empty() || !expected.ok()) // what the graph says of its shapes may be wrong there
    return refused.empty() || refused.starts_with("set shapes") ? "" : refused;
  return compareOutputs(random, *expected, actual);
}

struct Tally {
  int withVariants = 0; // models with a kernel of several variants
};

/// Compiles the model of `seed` and runs it at all these sizes in one context; empty where all agrees.
std::string difference(uint64_t seed, const Scratch &scratch, Tally &tally) {
  RandomGraphOptions options;
  options.openSizes = true;
  options.minNodes = 4;
  options.maxNodes = 12;
  options.maxElements = 6000;
  const RandomGraph random = makeRandomGraph(seed, options);
  CompileOptions compiling;
  compiling.inputPath = scratch.path / "model.onnx";
  compiling.outputPath = scratch.path / "bundle";
  compiling.targets = {"host"};
  compiling.plan.mode = SearchMode::Full;
  compiling.inspect = [&](const CompileState &state) {
    const auto &kernels = state.targets[0].schedules;
    tally.withVariants += std::any_of(kernels.begin(), kernels.end(),
                                      [](const auto &variants) { return variants.size() > 1; });
    return success();
  };
  {
    std::ofstream out(compiling.inputPath, std::ios::binary);
    ModelWriter(random.graph, seed % 4).model().SerializeToOstream(&out);
  }
  const auto report = compile(compiling);
  if (!report.ok())
    return format(report.errors()[0]);
  LoadedBundle bundle(compiling.outputPath, "host");
  const std::vector<Sizes> all = sizesOf(random, seed);
  for (const Sizes &sizes : all) {
    const auto inputs = randomInputs(random.graph, sizes, seed);
    const auto expected = evaluate(random.graph, inputs);
    if (!expected.ok())
      return format(expected.errors()[0]) + told(random, sizes);
    std::vector<TensorValue> actual;
    std::string error = bundle.run(inputs, actual);
    if (error.empty())
      error = compareOutputs(random, *expected, actual);
    if (!error.empty())
      return error + told(random, sizes);
  }
  return differenceBelow(random, all[0], seed, bundle);
}

/// A number of the environment, for runs that take longer than a test may.
uint64_t number(const char *variable, uint64_t usual) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

} // namespace

TEST_CASE("random models with open and computed sizes agree with the interpreter", "[sizes]") {
  Scratch scratch;
  Tally tally;
  const uint64_t first = number("FUSEC_RANDOM_MODELS_FROM", 1),
                 models = number("FUSEC_RANDOM_MODELS", 500);
  std::cout << "seeds " << first << " to " << first + models - 1 << "\n";
  for (uint64_t seed = first; seed < first + models; ++seed) {
    INFO("seed " << seed);
    CHECK(difference(seed, scratch, tally) == "");
  }
  INFO(tally.withVariants << " of " << models << " models have variants");
  CHECK((models < 50 ||
         static_cast<uint64_t>(tally.withVariants) * 5 >= models)); // or guards are not tried
}

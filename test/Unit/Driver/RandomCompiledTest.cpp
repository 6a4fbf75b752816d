// Compiled code against the Graph interpreter on random graphs: the whole way from the Graph stage to the runtime.
#include "RunBundle.h"

#include "Driver/Pipeline.h"
#include "Reference/GraphInterpreter.h"
#include "Reference/RandomGraph.h"

#include <catch2/catch_all.hpp>

#include <fstream>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Compiles the graph of `seed` for `target` and compares; empty when all agrees.
std::string difference(uint64_t seed, const std::string &target, const Scratch &scratch,
                       SearchMode mode = SearchMode::Full) {
  RandomGraph r = makeRandomGraph(seed);
  auto inputs = randomInputs(r.graph, randomSymbolValues(r.graph, seed), seed);
  auto expected = evaluate(r.graph, inputs);
  if (!expected.ok())
    return format(expected.errors()[0]);
  std::string folder = scratch.path.string();
  {
    ConstantStore store(folder);
    std::string text = print(r.graph, &store);
    std::ofstream(folder + "/graph.txt") << "# fusec dump graph " << target << "\n=== graph\n"
                                         << text;
  }
  CompileOptions options;
  options.inputPath = folder + "/graph.txt";
  options.outputPath = folder + "/bundle";
  options.targets = {target};
  options.ptxasPath = "";
  options.plan.mode = mode;
  auto report = compile(options);
  if (!report.ok())
    return format(report.errors()[0]);
  std::vector<TensorValue> actual;
  std::string error = runBundle(options.outputPath, target, inputs, actual);
  return error.empty() ? compareOutputs(r, *expected, actual) : error;
}

void checkTarget(const std::string &target, uint64_t seeds) {
  Scratch scratch;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO(target << ", seed " << seed);
    CHECK(difference(seed, target, scratch) == "");
  }
}

} // namespace

TEST_CASE("code for the host agrees with the interpreter on random graphs", "[random]") {
  checkTarget("host", 2000);
}
TEST_CASE("simulated NVIDIA code agrees with the interpreter on random graphs", "[random]") {
  checkTarget("sim:sm_90", 200);
}
TEST_CASE("simulated AMD code agrees with the interpreter on random graphs", "[random]") {
  checkTarget("sim:gfx90a", 200);
}
TEST_CASE("code of every search's plans agrees with the interpreter on random graphs", "[random]") {
  Scratch scratch;
  for (const SearchModeInfo &info : kSearchModes)
    for (uint64_t seed = 3001; info.mode != SearchMode::Full && seed <= 3030; ++seed)
      for (const char *target : {"host", "sim:sm_90", "sim:gfx90a"}) {
        INFO(target << ", " << info.name << ", seed " << seed);
        CHECK(difference(seed, target, scratch, info.mode) == "");
      }
}

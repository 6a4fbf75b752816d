#include "Reference/RandomGraph.h"
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <set>

using namespace fusec;

TEST_CASE(
    "random graphs verify, print, and stay within their tolerances when every value is rounded") {
  std::vector<size_t> sizes;
  std::set<DType> types;
  std::set<size_t> ranks;
  std::set<OpKind> ops;
  int symbolic = 0, empty = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    INFO("seed " << seed);
    RandomGraph r = makeRandomGraph(seed);
    sizes.push_back(r.graph.body.nodes.size());
    symbolic += !r.graph.symbols.empty();
    for (const Node &n : r.graph.body.nodes)
      ops.insert(n.op);
    Status status = verify(r.graph);
    INFO((status.ok() ? "" : format(status.errors()[0])));
    REQUIRE(status.ok());

    ConstantStore store;
    std::string text = print(r.graph, &store);
    auto parsed = parseGraph(text, "random", store);
    REQUIRE(parsed.ok());
    REQUIRE(print(*parsed, &store) == text);

    auto symbols = randomSymbolValues(r.graph, seed);
    auto inputs = randomInputs(r.graph, symbols, seed);
    auto expected = evaluate(r.graph, inputs);
    INFO((expected.ok() ? "" : format(expected.errors()[0])));
    REQUIRE(expected.ok());
    for (const TensorValue &t : *expected) {
      types.insert(t.type);
      ranks.insert(t.dims.size());
      empty += t.numElements() == 0;
    }
    GraphInterpreterOptions rounding;
    rounding.roundEachValue = true;
    auto rounded = evaluate(r.graph, inputs, rounding);
    REQUIRE(rounded.ok());
    REQUIRE(compareOutputs(r, *expected, *rounded) == "");
  }
  std::nth_element(sizes.begin(), sizes.begin() + 1000, sizes.end());
  CHECK(sizes[1000] >= 10);
  CHECK(types.size() == kNumDTypes);
  for (size_t rank = 0; rank <= 6; ++rank)
    CHECK(ranks.count(rank) == 1);
  CHECK(symbolic > 300);
  CHECK(empty > 50);
  CHECK(ops.size() >= 80);
}

TEST_CASE("a seed names one graph") {
  ConstantStore store;
  CHECK(print(makeRandomGraph(7).graph, &store) == print(makeRandomGraph(7).graph, &store));
  CHECK(print(makeRandomGraph(7).graph, &store) != print(makeRandomGraph(8).graph, &store));
}

TEST_CASE("a wrong element is reported") {
  RandomGraph r = makeRandomGraph(3);
  auto inputs = randomInputs(r.graph, randomSymbolValues(r.graph, 3), 3);
  auto expected = evaluate(r.graph, inputs);
  REQUIRE(expected.ok());
  for (size_t i = 0; i < expected->size(); ++i) {
    if ((*expected)[i].numElements() == 0)
      continue;
    auto changed = *expected;
    if (changed[i].isFloating())
      changed[i].floats[0] += 1 + 2 * r.tolerance[i];
    else
      changed[i].ints[0] ^= 1;
    CHECK(compareOutputs(r, *expected, changed) != "");
  }
}

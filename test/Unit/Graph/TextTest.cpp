// The text form of Graph holds everything: print -> parse -> print gives the same bytes and the same numbering.
#include "Graph/Passes.h"

#include <catch2/catch_test_macros.hpp>

#include <cmath>

using namespace fusec;

/// One of each kind of attribute, of value and of name.
static std::string sample() {
  return "graph \"odd name\\n\"\n"
         "symbol batch = 1..64 opt 8 divisor 1\n"
         "symbol \"s q\" = 2..128 opt 32 as length divisor 2\n"
         "constant %w = f32[2,2] {1.5, -0.0, inf, 3.0}\n"
         "constant %row = f32[2] {1.0, 2.0}\n"
         "constant %none = i64[0] {}\n"
         "constant %u = u64[1] {-1}\n"
         "constant %c = bool[] {1}\n"
         "input %\"x 1\": f32[batch,2]\n"
         "input %p: bool[] default {1}\n"
         "input %d: f16[2,1] default {0.5, -2.0}\n"
         "%s: i64[2] {batch, 2} = Shape(%\"x 1\") {end = 2, start = 0} @shape\n"
         "%y: f32[batch,2] = Gemm(%\"x 1\", %w) {alpha = float 1.0, beta = float 0.5, transA = 0, "
         "transB = 1} "
         "@\"a \\\"b\\\"\" from FusedGemm\n"
         "%v: f32[batch,2], _, _ = LayerNormalization(%y, %row) {axis = 1, epsilon = float 1e-05} "
         "@ln\n"
         "%z: f32[batch,2] = If(%p) @if1\n"
         "  region () captures (%y)\n"
         "    %t: f32[batch,2] = Relu(%y) @r\n"
         "    return %t\n"
         "  end\n"
         "  region () captures (%y)\n"
         "    %e: f32[batch,2] = Cast(%y) {saturate = 1, to = type f32} @cast\n"
         "    return %e\n"
         "  end\n"
         "return %z, %s, %v\n";
}

TEST_CASE("text round trip is exact") {
  ConstantStore store;
  auto g = parseGraph(sample(), "t", store);
  INFO((g.ok() ? "" : format(g.errors()[0])));
  REQUIRE(g.ok());
  std::string text = print(*g, &store);
  auto again = parseGraph(text, "t", store);
  REQUIRE(again.ok());
  CHECK(print(*again, &store) == text);
  REQUIRE(again->values.size() == g->values.size());
  for (size_t i = 0; i < g->values.size(); ++i)
    CHECK(again->values[i].name == g->values[i].name);
}

static std::string sizes(const std::string &body, const std::string &bound = "batch*2") {
  return "graph sizes\n"
         "symbol batch = 1..64 opt 8 divisor 1\n"
         "symbol found = 0..128 opt 16 divisor 1 bound [" +
         bound +
         "]\n"
         "input %mask: bool[batch]\n"
         "input %count: i64[]\n" +
         body + "return %places\n";
}
static std::string refusalOf(const std::string &text) {
  auto g = parseGraph(text, "t", ConstantStore());
  return g.ok() ? "" : g.errors()[0].where + ": " + g.errors()[0].text;
}

TEST_CASE("sizes that depend on data") {
  const std::string size = "%n: i64[] {found} = DataSize(%count) {symbol = \"found\"} @size\n",
                    places = "%places: i64[found] = Chosen(%mask) @places\n";
  auto g = parseGraph(sizes(size + places), "t", ConstantStore());
  INFO((g.ok() ? "" : format(g.errors()[0])));
  REQUIRE(g.ok());
  CHECK(print(*g, nullptr) == sizes(size + places));
  CHECK(g->symbols[1].isDataDependent());
  // Who has the size keeps the node that tells it, which stands in front of it.
  auto swept = eliminateDeadCode(std::move(*g), {});
  REQUIRE(swept.ok());
  CHECK(print(*swept, nullptr) == sizes(size + places));

  CHECK(refusalOf(sizes(places + size)) ==
        "sizes: node 'places' (Chosen): %places has the size 'found', which no node in front of it "
        "gives a value");
  CHECK(refusalOf(
            sizes(size + places + "%m: i64[] = DataSize(%count) {symbol = \"found\"} @again\n")) ==
        "sizes: node 'again' (DataSize): symbol 'found' has a value already");
  CHECK(refusalOf(
            sizes(size + "%m: i64[] = DataSize(%count) {symbol = \"batch\"} @other\n" + places)) ==
        "sizes: node 'other' (DataSize): there is no symbol 'batch' that depends on data");
  CHECK(refusalOf(sizes(size + places, "found + 1")).find("'found + 1' is no dimension") !=
        std::string::npos);
}

TEST_CASE("what no node reads of an If, its branches do not make") {
  auto chain = [](const std::string &results, const std::string &unread,
                  const std::string &handedOn) {
    return "graph g\n"
           "input %x: f32[4]\n"
           "input %p: bool[]\n" +
           results + " = If(%p) @if\n  region () captures (%x)\n" + unread +
           "    %b: f32[4] = Relu(%x) @b\n    return " + handedOn + "%b\n  end\n" +
           "  region () captures (%x)\n    %d: f32[4] = Exp(%x) @d\n    return " +
           (handedOn.empty() ? "" : "%x, ") + "%d\n  end\nreturn %z\n";
  };
  auto g = parseGraph(chain("%y: f32[4], %z: f32[4]", "    %a: f32[4] = Neg(%x) @a\n", "%a, "), "t",
                      ConstantStore());
  INFO((g.ok() ? "" : format(g.errors()[0])));
  REQUIRE(g.ok());
  auto swept = eliminateDeadCode(std::move(*g), {});
  REQUIRE(swept.ok());
  CHECK(print(*swept, nullptr) == chain("%z: f32[4]", "", ""));
}

TEST_CASE("large constants and NaN go through the store") {
  Graph g;
  g.name = "g";
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 100; ++i)
    appendElement(bytes, DType::F16, static_cast<double>(i));
  Value big;
  big.name = "big";
  big.type = DType::F16;
  big.shape = {DimExpr(100)};
  big.constant = makeConstant(DType::F16, {100}, bytes);
  Value nan;
  nan.name = "nan";
  nan.constant = makeScalarConstant(DType::F32, std::nan(""));
  g.body.outputs = {g.addValue(big), g.addValue(nan)};
  ConstantStore store;
  std::string text = print(g, &store);
  CHECK(text.find("digest") != std::string::npos);
  auto again = parseGraph(text, "t", store);
  REQUIRE(again.ok());
  CHECK(again->value(0).constant->digest == big.constant->digest);
  CHECK(again->value(1).constant->digest == nan.constant->digest);
  ConstantStore empty;
  CHECK_FALSE(parseGraph(text, "t", empty).ok());
}

static std::string firstError(const std::string &text) {
  ConstantStore store;
  auto g = parseGraph(text, "t", store);
  return g.ok() ? "" : format(g.errors()[0]);
}

TEST_CASE("the parser and the verifier say what is wrong") {
  std::string head = "graph g\ninput %x: f32[2]\n";
  CHECK(firstError(head + "%y: f32[2] = Relu(%q) @n\nreturn %y\n") ==
        "error[E3002] t:3: %q is not defined before its use");
  CHECK(firstError(head + "%y: f32[2] = Nothing(%x) @n\nreturn %y\n") ==
        "error[E3002] t:3: 'Nothing' is no operator of the graph");
  CHECK(firstError(head + "%y: f32[2] = Relu(%x) {axis = 1} @n\nreturn %y\n") ==
        "error[E3003] g: node 'n' (Relu): has an attribute that the operator does not have");
  CHECK(firstError(head + "%y: f32[2] = Softmax(%x) @n\nreturn %y\n") ==
        "error[E3003] g: node 'n' (Softmax): attribute 'axis' is missing");
  CHECK(firstError(head + "%y: f32[2] = Add(%x) @n\nreturn %y\n") ==
        "error[E3003] g: node 'n' (Add): has 1 inputs");
  CHECK(firstError(head + "%y: f32[3] = Relu(%x) @n\n") ==
        "error[E3002] t:4: expected 'return' before the end of the file");
  CHECK(firstError("graph g\nconstant %c = f32[3] {1.0, 2.0}\ninput %x: f32[2]\nreturn %x\n") ==
        "error[E3002] t:3: the constant has 2 elements, its shape 3");
}

TEST_CASE("identities go and the names of outputs stay") {
  ConstantStore store;
  auto g = parseGraph("graph g\ninput %x: f32[2,3]\n"
                      "%a: f32[2,3] = Relu(%x) @r\n"
                      "%b: f32[2,3] = Transpose(%a) {perm = [0, 1]} @t\n"
                      "%y: f32[2,3] = Identity(%b) @i\n"
                      "%z: f32[2,3] = Identity(%x) @j\n"
                      "return %y, %z\n",
                      "t", store);
  REQUIRE(g.ok());
  Graph graph = std::move(*g);
  for (const Pass<Graph> &pass : graphPasses({})) {
    REQUIRE(pass.run(graph).ok());
    REQUIRE(verify(graph).ok());
  }
  CHECK(print(graph, nullptr) == "graph g\ninput %x: f32[2,3]\n"
                                 "%y: f32[2,3] = Relu(%x) @r\n"
                                 "%z: f32[2,3] = Identity(%x) @j\n"
                                 "return %y, %z\n");
}

TEST_CASE("equal nodes are merged, different attributes are not") {
  ConstantStore store;
  auto g = parseGraph("graph g\ninput %x: f32[2,3]\n"
                      "%a: f32[2,3] = Softmax(%x) {axis = 1} @a\n"
                      "%b: f32[2,3] = Softmax(%x) {axis = 1} @b\n"
                      "%c: f32[2,3] = Softmax(%x) {axis = 0} @c\n"
                      "%d: f32[2,3] = Add(%a, %b) @d\n"
                      "%y: f32[2,3] = Add(%d, %c) @e\n"
                      "return %y\n",
                      "t", store);
  REQUIRE(g.ok());
  auto merged = eliminateCommonSubexpressions(std::move(*g), {});
  REQUIRE(merged.ok());
  auto clean = eliminateDeadCode(std::move(*merged), {});
  REQUIRE(clean.ok());
  CHECK(clean->body.nodes.size() == 4);
  const Node &sum = clean->body.nodes[1]; // right behind what it needs
  REQUIRE(sum.inputs.size() == 2);
  CHECK(sum.inputs[0] == sum.inputs[1]);
}

TEST_CASE("constants fold through the evaluator, outputs of the graph stay computed") {
  ConstantStore store;
  auto g = parseGraph("graph g\nconstant %w = f32[2] {1.0, 2.0}\ninput %x: f32[2]\n"
                      "%a: f32[2] = Neg(%w) @a\n"
                      "%y: f32[2] = Add(%x, %a) @y\n"
                      "%z: f32[2] = Neg(%w) @z\n"
                      "return %y, %z\n",
                      "t", store);
  REQUIRE(g.ok());
  GraphPassOptions options;
  int calls = 0;
  options.evaluator = [&](const Graph &, const Node &,
                          const std::vector<ConstantRef> &in) -> Result<std::vector<ConstantRef>> {
    ++calls;
    std::vector<uint8_t> data;
    for (int64_t i = 0; i < 2; ++i)
      appendElement(data, DType::F32, -in[0]->floatAt(i));
    return std::vector<ConstantRef>{makeConstant(DType::F32, {2}, std::move(data))};
  };
  auto folded = foldConstants(std::move(*g), options);
  REQUIRE(folded.ok());
  auto clean = eliminateDeadCode(std::move(*folded), {});
  REQUIRE(verify(*clean).ok());
  CHECK(clean->body.nodes.size() == 2);
  CHECK(calls >= 1);
  CHECK(print(*clean, nullptr).find("%a = f32[2] {-1.0, -2.0}") != std::string::npos);
}

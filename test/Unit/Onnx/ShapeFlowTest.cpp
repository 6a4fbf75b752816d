// Shape arithmetic that exporters write around Reshape, Expand, Slice and Range folds away, with fixed and with
// symbolic sizes.
#include "Models.h"

#include "Reference/GraphInterpreter.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Half of element `place` of `sizes`, rounded down, by way of floats: no expression gives it.
void half(ModelMaker &m, const std::string &sizes, const std::string &place,
          const std::string &name) {
  m.node("Gather", {sizes, place}, {name + "i"});
  attribute(m.node("Cast", {name + "i"}, {name + "f"}), "to", 1);
  attribute(m.node("Cast", {"two"}, {name + "two"}), "to", 1);
  m.node("Div", {name + "f", name + "two"}, {name + "q"});
  m.node("Floor", {name + "q"}, {name + "d"});
  attribute(m.node("Cast", {name + "d"}, {name}), "to", 7);
}

} // namespace

TEST_CASE("a reshape computed from Shape, Gather and Concat leaves only the reshape") {
  ModelMaker m;
  m.input("x", {"batch", "seq", 768})
      .output("y")
      .ints("i0", {0})
      .ints("i1", {1})
      .ints("heads", {12, 64});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "i0"}, {"b"});
  m.node("Gather", {"s", "i1"}, {"t"});
  attribute(m.node("Concat", {"b", "t", "heads"}, {"target"}), "axis", 0);
  m.node("Reshape", {"x", "target"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[batch,seq,12,64]\n");
  CHECK(g->body.nodes.size() == 1);
}

TEST_CASE("-1 in a target shape divides symbols") {
  ModelMaker m;
  m.input("x", {"batch", 12, "seq", 64}).output("y").ints("target", {0, -1, 768});
  m.node("Reshape", {"x", "target"}, {"y"});
  CHECK(outcome(m.import()) == "f32[batch,seq,768]\n");
}

TEST_CASE("arithmetic on sizes stays symbolic") {
  ModelMaker m;
  m.input("x", {"n"})
      .output("y")
      .ints("two", {2}, true)
      .ints("one", {1}, true)
      .ints("zero", {0}, true);
  m.node("Size", {"x"}, {"n"});
  m.node("Div", {"n", "two"}, {"h"});
  m.node("Add", {"h", "one"}, {"limit"});
  m.node("Range", {"zero", "limit", "one"}, {"y"});
  CHECK(outcome(m.import()) == "i64[floordiv(n, 2) + 1]\n");
}

TEST_CASE("Where over Equal with -1 chooses at compile time") {
  ModelMaker m; // the expand() of the TorchScript exporter
  m.input("x", {"batch", 1})
      .output("y")
      .ints("want", {-1, 5})
      .ints("minus", {-1})
      .ints("ones", {1, 1});
  m.node("Equal", {"want", "minus"}, {"is"});
  m.node("Where", {"is", "ones", "want"}, {"target"});
  m.node("Expand", {"x", "target"}, {"y"});
  auto g = m.import();
  CHECK(outcome(g) == "f32[batch,5]\n");
}

TEST_CASE("slices of a symbolic axis") {
  ModelMaker m;
  m.input("x", {"n", 4}).output("a").output("b").output("c");
  m.ints("zero", {0}).ints("one", {1}).ints("minus", {-1}).ints("end", {INT64_MAX});
  m.node("Slice", {"x", "one", "end", "zero"}, {"a"});
  m.node("Slice", {"x", "minus", "end", "zero"}, {"b"});
  m.node("Slice", {"x", "zero", "minus", "zero"}, {"c"});
  ImportOptions options;
  REQUIRE(parseDimOption("n=2..100:8", options).ok());
  auto g = m.import(options);
  REQUIRE(outcome(g) == "f32[n - 1,4]\nf32[1,4]\nf32[n - 1,4]\n");
  CHECK(count(*g, OpKind::Slice) == 1);
  CHECK(count(*g, OpKind::SliceDynamic) ==
        2); // a start or an end that is symbolic and not that of the axis
}

/// Rules of a graph, one a line.
static std::string rules(const Graph &g) { return sizeRulesText(g.sizeRules, g.symbols); }

TEST_CASE("a size that operands give the output is not negative") {
  ModelMaker m;
  m.input("x", {"n"}).output("y").output("z").ints("five", {5}).ints("three", {3});
  m.node("Shape", {"x"}, {"s"});
  m.node("Sub", {"s", "five"}, {"t"});
  m.node("ConstantOfShape", {"t"}, {"y"});
  attribute(m.node("Cast", {"s"}, {"f"}), "to", onnx::TensorProto::FLOAT);
  m.node("Sqrt", {"f"}, {"r"});
  attribute(m.node("Cast", {"r"}, {"i"}), "to", onnx::TensorProto::INT64);
  m.node("Sub", {"i", "three"}, {"u"});
  m.node("ConstantOfShape", {"u"}, {"z"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[n - 5]\nf32[computed.0 - 3]\n");
  CHECK(g->symbols[0].min == 5);
  CHECK(g->symbols[1].min == 3);
  CHECK(rules(*g) ==
        "rule least [n - 5, 0] by \"ConstantOfShape_y\" \"ConstantOfShape\" \"a size of "
        "the output must be at least 0\"\n"
        "rule least [computed.0 - 3, 0] by \"ConstantOfShape_z\" \"ConstantOfShape\" "
        "\"a size of the output must be at least 0\"\n");
}

TEST_CASE("k of TopK follows from sizes") {
  for (const bool isOfAxis : {true, false}) {
    ModelMaker m;
    m.input("x", {"n"}).input("w", {"k"}).output("y").ints("ten", {10});
    m.node("Shape", {isOfAxis ? "x" : "w"}, {"s"});
    m.node("Min", {"s", "ten"}, {"k"});
    m.node("TopK", {"x", "k"}, {"y", "i"});
    auto g = m.import();
    REQUIRE(outcome(g) == (isOfAxis ? "f32[min(n, 10)]\n" : "f32[min(k, 10)]\n"));
    CHECK(rules(*g) == (isOfAxis ? ""
                                 : "rule tested least [n, min(k, 10)] by \"TopK_y\" \"TopK\" "
                                   "\"the axis must have as many elements as are to be found\"\n"));
  }
}

TEST_CASE("sizes that have to agree are one from the inputs on") {
  ModelMaker m;
  m.input("a", {"p", "q"}).input("b", {"r", "s"}).output("y").output("z");
  m.node("MatMul", {"a", "b"}, {"y"});
  m.node("Relu", {"b"}, {"z"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[p,s]\nf32[q,s]\n");
  CHECK(rules(*g) == "inferred r = [q] of (\"b\" 0)\n"
                     "rule equal [q, r] by \"MatMul_y\" \"MatMul\" \"the sizes to sum over must "
                     "be equal\"\n");
  CHECK(g->symbols.size() == 3);
}

TEST_CASE("which of two sizes to broadcast is 1 is for a run to say, or they are equal") {
  ModelMaker m;
  m.input("a", {"n"}).input("b", {"k"}).output("y");
  m.node("Add", {"a", "b"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[min(min(n, k), 1)*max(n, k)]\n");
  CHECK(rules(*g).find("rule tested either [n, k]") == 0);
  ModelMaker summed; // what is summed over has the size of one of them
  summed.input("a", {"n"}).input("b", {"k"}).input("w", {"n", 2}).output("y");
  summed.node("Add", {"a", "b"}, {"s"});
  summed.node("MatMul", {"s", "w"}, {"y"});
  auto assumed = summed.import();
  REQUIRE(outcome(assumed) == "f32[2]\n");
  CHECK(rules(*assumed).find("rule equal [n, k]") != std::string::npos);
  ModelMaker other; // one of them has to be 1
  other.input("a", {"n", 2}).input("b", {"k", 2}).output("y").output("z").ints("zero", {0});
  other.node("Add", {"a", "b"}, {"y"});
  other.node("Squeeze", {"b", "zero"}, {"z"});
  CHECK(outcome(other.import()) == "f32[n,2]\nf32[2]\n");
}

TEST_CASE("a size beside a fixed one may be 1") {
  ModelMaker m;
  m.input("a", {"n", 12}).input("b", {"n", "k"}).output("y");
  m.node("Add", {"a", "b"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[n,12]\n");
  CHECK(rules(*g).find("rule tested broadcast [k, 12]") == 0);
}

TEST_CASE("a size beside 0 that is the larger one of 0 and another") {
  ModelMaker m; // x[min(n, 6):2] is empty where n >= 2
  m.input("x", {"n", 3}).input("none", {0, 3}).output("y").output("z");
  m.ints("six", {6}).ints("two", {2}).ints("none of 3", {0, 3});
  attribute(m.node("Shape", {"x"}, {"n of x"}), "end", 1);
  m.node("Min", {"n of x", "six"}, {"begin"});
  m.node("Slice", {"x", "begin", "two"}, {"s"});
  m.node("Add", {"s", "none"}, {"y"});
  m.node("Expand", {"s", "none of 3"}, {"z"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[0,3]\nf32[0,3]\n");
  CHECK(rules(*g).find("rule tested equal [max(min(n, 2) - min(n, 6), 0), 0]") == 0);
}

TEST_CASE("a size beside a fixed one that equality solves for no symbol") {
  ModelMaker m; // min(n, 4) * min(m, 4) elements, twice, and two beside 14
  m.input("x", {"n", "m"}).input("pair", {2}).input("all of them", {14}).output("y");
  m.ints("begin", {0, 0}).ints("end", {4, 4}).ints("all", {-1});
  m.node("Slice", {"x", "begin", "end"}, {"corner"});
  m.node("Reshape", {"corner", "all"}, {"row"});
  attribute(m.node("Concat", {"row", "row", "pair"}, {"rows"}), "axis", 0);
  m.node("Add", {"rows", "all of them"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[14]\n");
  CHECK(rules(*g).find("rule tested equal [") == 0);
}

TEST_CASE("a computed size of an earlier import is made of what its symbols are since") {
  ModelMaker m; // half of n is half of m, and behind that m is k
  m.input("z", {"k"}).input("y", {"m"}).input("x", {"n"}).output("halves").output("whole");
  m.ints("zero", {0}).ints("two", {2});
  m.node("Shape", {"x"}, {"sx"});
  m.node("Shape", {"y"}, {"sy"});
  half(m, "sx", "zero", "b");
  half(m, "sy", "zero", "a");
  m.node("ConstantOfShape", {"a"}, {"left"});
  m.node("ConstantOfShape", {"b"}, {"right"});
  m.node("MatMul", {"left", "right"}, {"halves"});
  m.node("MatMul", {"y", "z"}, {"whole"});
  ImportOptions options;
  options.evaluator = referenceEvaluator();
  auto g = m.import(options);
  REQUIRE(outcome(g) == "f32[]\nf32[]\n");
  CHECK(verify(*g).ok());
}

TEST_CASE("a sum of two sizes that stands for another size is that") {
  ModelMaker
      m; // the larger one of k and m is twice n, and m is n: n is 1 where k of them are added
  m.input("x", {"n"}).input("z", {"k"}).input("w", {"m"});
  m.output("all").output("added").output("whole");
  m.node("Shape", {"x"}, {"n of x"});
  m.node("Shape", {"z"}, {"k of z"});
  m.node("Shape", {"w"}, {"m of w"});
  m.node("Max", {"k of z", "m of w"}, {"larger"});
  m.node("Sub", {"larger", "n of x"}, {"rest"});
  m.node("ConstantOfShape", {"rest"}, {"zeros"});
  m.node("MatMul", {"zeros", "x"}, {"all"});
  m.node("Add", {"x", "z"}, {"added"});
  m.node("MatMul", {"x", "w"}, {"whole"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[]\nf32[n*min(min(n, k), 1)*2]\nf32[]\n");
  CHECK(rules(*g).find("rule tested either [n, k]") != std::string::npos);
}

TEST_CASE("sizes that contradict each other are an error that names the nodes") {
  ModelMaker m;
  m.input("x", {"n", "c"}).input("w", {3}).input("v", {4}).output("y").output("z");
  m.node("MatMul", {"x", "w"}, {"y"});
  m.node("MatMul", {"x", "v"}, {"z"});
  CHECK(outcome(m.import()) ==
        "error[E3107] model-under-test.onnx: node 'MatMul_z' (MatMul, opset 18): the sizes to sum "
        "over must be equal: c and 4, where c is 3 by node 'MatMul_y' (MatMul); the inputs are "
        "(f32[n,c], f32[4])\n");
}

TEST_CASE("what narrowed a size is named by what contradicts it") {
  const std::string place = "error[E3107] model-under-test.onnx: node '";
  for (const bool topFirst : {true, false}) {
    ModelMaker m;
    m.input("x", {"n"}).input("w", {"m"}).output("y").output("z").output("t").ints("k", {10});
    m.input("v", {5});
    auto top = [&] { m.node("TopK", {"w", "k"}, {"t"}); };
    if (topFirst)
      top();
    m.node("MatMul", {"x", "w"}, {"y"});
    m.node("MatMul", {"x", "v"}, {"z"});
    if (!topFirst)
      top();
    CHECK(outcome(m.import()) ==
          place + (topFirst
                       ? "MatMul_z' (MatMul, opset 18): the sizes to sum over must be equal: n and "
                         "5, where m is at least 10 by node 'TopK_t' (TopK), and m is n by node "
                         "'MatMul_y' (MatMul); the inputs are (f32[n], f32[5])\n"
                       : "TopK_t' (TopK, opset 18): the axis of which the k largest are taken must "
                         "be at least 10; it is m, where m is n by node 'MatMul_y' (MatMul), and n "
                         "is 5 by node 'MatMul_z' (MatMul); the inputs are (f32[m], i64[1])\n"));
  }
}

TEST_CASE("what the model declares holds where its nodes leave sizes open") {
  ModelMaker m;
  m.input("x", {"b", "n"}).input("z", {"c", "m"}).output("y", {"b", "m"}).output("w", {3, "m"});
  m.node("Relu", {"x"}, {"y"});
  m.node("Relu", {"z"}, {"w"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[b,n]\nf32[3,n]\n");
  CHECK(rules(*g) == "inferred c = [3] of (\"z\" 0)\ninferred m = [n] of (\"z\" 1)\n"
                     "rule equal [c, 3] by \"Relu_w\" \"Relu\" \"output 'w' must be as the model "
                     "declares it\"\n"
                     "rule equal [n, m] by \"Relu_y\" \"Relu\" \"output 'y' must be as the model "
                     "declares it\"\n");
  // What the user says of a size comes first.
  ImportOptions open;
  REQUIRE(parseDimOption("c=1..8", open).ok());
  CHECK(outcome(m.import(open)) == "f32[b,n]\nf32[c,n]\n");
  setType(*m.model.mutable_graph()->add_value_info(), "flat", onnx::TensorProto::FLOAT, {12});
  m.ints("all", {-1}).output("s");
  m.node("Reshape", {"x", "all"}, {"flat"});
  m.node("Relu", {"flat"}, {"s"});
  g = m.import();
  REQUIRE(outcome(g) == "f32[b,n]\nf32[3,n]\nf32[b*n]\n");
  CHECK(rules(*g).find("rule tested equal [b*n, 12] by \"Reshape_flat\" \"Reshape\" \"tensor "
                       "'flat' must be as the model declares it\"\n") != std::string::npos);
}

TEST_CASE("nodes come before what the model declares") {
  // The squeezed size is 1 whatever is declared, and 4 rows of 3 do not divide into blocks.
  ModelMaker m;
  m.input("x", {"n", "k"}).output("y", {4, "k"}).output("z", {"n", 3}).output("w", {7});
  m.input("one", {"n", "o"}).ints("to", {1, -1, 1, 1}).ints("last", {1}).output("u");
  m.node("Relu", {"x"}, {"y"});
  m.node("Neg", {"x"}, {"z"});
  m.node("Reshape", {"x", "to"}, {"r"});
  attribute(m.node("DepthToSpace", {"r"}, {"u"}), "blocksize", 5);
  m.node("Squeeze", {"one", "last"}, {"w"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[n,k]\nf32[n,k]\nf32[n]\nf32[1,floordiv(n*k, 25),5,5]\n");
  CHECK(rules(*g).find("declares") == std::string::npos);
}

TEST_CASE("parts of a split are equal where a run divides") {
  for (const int opset : {17, 18}) {
    ModelMaker m(opset);
    m.input("x", {"n", "k"}).output("a").output("b").ints("all", {-1});
    m.node("Reshape", {"x", "all"}, {"flat"});
    auto &split = m.node("Split", {"flat"}, {"a", "b"});
    if (opset == 18)
      attribute(split, "num_outputs", 2);
    auto g = m.import();
    const bool isUneven = opset == 18;
    REQUIRE(outcome(g) == (isUneven ? "f32[floordiv(n*k + 1, 2)]\nf32[n*k - floordiv(n*k + 1, 2)]\n"
                                    : "f32[floordiv(n*k, 2)]\nf32[floordiv(n*k, 2)]\n"));
    CHECK(rules(*g) ==
          (isUneven ? "rule tested least [n*k, floordiv(n*k + 1, 2) + 1] by \"Split_a\" \"Split\" "
                      "\"each of the parts must have an element\"\n"
                    : "rule tested multiple [n*k, 2] by \"Split_a\" \"Split\" \"an axis that is "
                      "split into equal parts must be a multiple of 2\"\n"));
    // Parts that have to be equal elsewhere.
    m.output("y").node("MatMul", {"a", "b"}, {"y"});
    g = m.import();
    REQUIRE(outcome(g) == "f32[floordiv(n*k, 2)]\nf32[floordiv(n*k, 2)]\nf32[]\n");
  }
}

TEST_CASE("a half that is joined with the other makes a size even") {
  ModelMaker m;
  m.input("x", {1, 1, "h", 4}).output("y");
  m.node("MaxPool", {"x"}, {"p"});
  attribute(*m.model.mutable_graph()->mutable_node(0), "kernel_shape", std::vector<int64_t>{2, 1});
  attribute(*m.model.mutable_graph()->mutable_node(0), "strides", std::vector<int64_t>{2, 1});
  m.node("Concat", {"p", "p"}, {"twice"});
  attribute(*m.model.mutable_graph()->mutable_node(1), "axis", 2);
  m.node("Add", {"x", "twice"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[1,1,h,4]\n");
  CHECK(g->symbols[0].divisor == 2);
}

TEST_CASE("what only some sizes allow narrows their range") {
  ModelMaker m;
  m.input("x", {"n", 6}).output("y").output("z").output("w");
  m.ints("to", {-1, 12}).ints("two", {2}).ints("twelve", {12}).ints("zero", {0}).ints("k", {3});
  m.node("Reshape", {"x", "to"}, {"y"});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"rows"});
  m.node("Div", {"rows", "two"}, {"half"});
  m.node("Concat", {"half", "twelve"}, {"t"});
  attribute(*m.model.mutable_graph()->mutable_node(4), "axis", 0);
  m.node("Reshape", {"x", "t"}, {"z"});
  attribute(m.node("TopK", {"x", "k"}, {"w"}), "axis", 0);
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[floordiv(n, 2),12]\nf32[floordiv(n, 2),12]\nf32[3,6]\n");
  CHECK(g->symbols[0].min == 4);
  CHECK(g->symbols[0].divisor == 2);
  ImportOptions small;
  REQUIRE(parseDimOption("n=1..2", small).ok());
  CHECK(outcome(m.import(small)) ==
        "error[E3108] model-under-test.onnx: node 'TopK_w' (TopK, opset 18): k is 3; it must be "
        "between 0 and the axis' size\n");
  ImportOptions odd;
  REQUIRE(parseDimOption("n=5", odd).ok());
  CHECK(outcome(m.import(odd)).find("error[E3107]") == 0);
}

TEST_CASE("whether a product divides is tested when shapes are set") {
  ModelMaker m;
  m.input("x", {"n", "k"}).output("y");
  m.ints("to", {-1, 12});
  m.node("Reshape", {"x", "to"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[floordiv(n*k, 12),12]\n");
  CHECK(rules(*g) == "rule tested equal [n*k, floordiv(n*k, 12)*12] by \"Reshape_y\" \"Reshape\" "
                     "\"the numbers of elements must be equal\"\n");
}

TEST_CASE("a table of positions bounds the sequence") {
  ModelMaker m;
  m.input("x", {"batch", "seq"}, onnx::TensorProto::INT64).output("y");
  m.ints("positions", {0, 1, 2, 3, 4, 5, 6, 7}).ints("zero", {0}).ints("one", {1});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "one"}, {"length"});
  m.node("Slice", {"positions", "zero", "length", "zero"}, {"p"});
  m.node("Add", {"x", "p"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "i64[batch,seq]\n");
  CHECK(g->symbols[1].max == 8);
  ImportOptions options;
  REQUIRE(parseDimOption("seq=1..16", options).ok());
  CHECK(outcome(m.import(options))
            .find("the model allows at most 8 for seq; pass a --dim range within that") !=
        std::string::npos);
}

TEST_CASE("a decoder's first step has a past of 0, and a mask with a length of its own") {
  ModelMaker m;
  m.input("past", {"p"}).input("new", {"l"}).input("mask", {"t"}).output("y");
  attribute(m.node("Concat", {"past", "new"}, {"all"}), "axis", 0);
  m.node("Add", {"all", "mask"}, {"scores"});
  m.node("MatMul", {"scores", "all"}, {"y"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[]\n");
  for (const Symbol &s : g->symbols)
    CHECK(s.min == 0);
  CHECK(rules(*g) == "inferred t = [p + l] of (\"mask\" 0)\n"
                     "rule equal [p + l, t] by \"Add_scores\" \"Add\" "
                     "\"the sizes to broadcast together must be equal where neither is fixed\"\n");
}

TEST_CASE("one of two sizes may be 1 where no symbol makes them equal") {
  ModelMaker m;
  m.input("x", {"n"}).input("y", {"m"}).output("z");
  m.node("Shape", {"x"}, {"n"});
  m.node("Shape", {"y"}, {"m"});
  m.node("Min", {"n", "m"}, {"less"});
  m.node("ConstantOfShape", {"less"}, {"zeros"});
  m.node("Add", {"zeros", "y"}, {"z"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[min(min(n, m), 1)*max(m, min(n, m))]\n");
  CHECK(rules(*g) == "rule tested either [min(n, m), m] by \"Add_z\" \"Add\" "
                     "\"the sizes to broadcast together must be equal, or one of them 1\"\n");
}

TEST_CASE("--dim fixes and bounds, --shape replaces") {
  ModelMaker m;
  m.input("x", {"batch", 3}).output("y");
  m.node("Relu", {"x"}, {"y"});
  // A name whose range leaves one value is no symbol: no input's shape would tell it.
  for (const char *text : {"batch=4", "batch=4..4", "batch=4..4:4"}) {
    ImportOptions fixed;
    REQUIRE(parseDimOption(text, fixed).ok());
    auto four = m.import(fixed);
    CHECK(outcome(four) == "f32[4,3]\n");
    CHECK(four->symbols.empty());
    REQUIRE(parseShapeOption("x:[batch,3]", fixed).ok());
    auto shapedFour = m.import(fixed);
    CHECK(outcome(shapedFour) == "f32[4,3]\n");
    CHECK(shapedFour->symbols.empty());
  }
  ImportOptions bounded;
  REQUIRE(parseDimOption("batch=1..64:8", bounded).ok());
  auto g = m.import(bounded);
  REQUIRE(g.ok());
  CHECK(g->symbols[0].min == 1);
  CHECK(g->symbols[0].opt == 8);
  CHECK(g->symbols[0].max == 64);
  ImportOptions shaped;
  REQUIRE(parseShapeOption("x:7x3", shaped).ok());
  CHECK(outcome(m.import(shaped)) == "f32[7,3]\n");
  ImportOptions wrong;
  REQUIRE(parseDimOption("bach=4", wrong).ok());
  CHECK(outcome(m.import(wrong)) ==
        "error[E2001] --dim bach: no input of the model has a size of this name; names are "
        "'batch'\n");
  ImportOptions bad;
  CHECK_FALSE(parseDimOption("batch=8..4", bad).ok());
  CHECK_FALSE(parseDimOption("batch", bad).ok());
  CHECK_FALSE(parseShapeOption("x", bad).ok());
  CHECK_FALSE(parseShapeOption("x:1xbatch", bad).ok());
}

/// y is `op` of x where the data says so, else of z.
static void choice(ModelMaker &m, const std::string &op) {
  m.input("c", {}, onnx::TensorProto::BOOL);
  auto &n = m.node("If", {"c"}, {"y"});
  for (const std::string side : {"then", "else"}) {
    auto *a = n.add_attribute();
    a->set_name(side + "_branch");
    a->set_type(onnx::AttributeProto::GRAPH);
    auto *inner = a->mutable_g()->add_node();
    inner->set_op_type(op);
    inner->add_input(side == "then" ? "x" : "z");
    inner->add_output(side);
    a->mutable_g()->add_output()->set_name(side);
  }
}

TEST_CASE("sizes that the data tells in a branch are told anew behind it") {
  ModelMaker m;
  m.input("x", {"n"}).input("z", {"m"}).output("y");
  choice(m, "NonZero");
  const Result<Graph> graph = m.import();
  REQUIRE(graph.ok());
  const Shape &y = graph->value(graph->body.outputs[0]).shape;
  REQUIRE(y.size() == 2);
  REQUIRE(y[1].op() == DimExpr::Op::Symbol);
  const Symbol &told = graph->symbols[static_cast<size_t>(y[1].symbolId())];
  CHECK(told.name == "y_d1");
  CHECK(told.bound->str(graph->symbols) == "max(n, m)");
}

TEST_CASE("which of two sizes an If makes is told behind it") {
  ModelMaker m;
  m.input("x", {"n", 4}).input("z", {"m", 4}).output("y", {"n", 4});
  choice(m, "Relu");
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[y_d0,4]\n");
  CHECK(rules(*g) == "");
  CHECK(g->symbols.back().bound->str(g->symbols) == "max(n, m)");
  // A node behind needs one of the two: runs are tested.
  ModelMaker behind;
  behind.input("x", {"n", 4}).input("z", {"m", 4}).input("w", {"n"}).output("v");
  choice(behind, "Relu");
  behind.node("MatMul", {"w", "y"}, {"v"});
  g = behind.import();
  REQUIRE(outcome(g) == "f32[4]\n");
  CHECK(rules(*g) ==
        "rule tested equal [n, y_d0] by \"MatMul_v\" \"MatMul\" \"the sizes to sum over "
        "must be equal\"\n");
}

TEST_CASE("sizes of an If that a later node needs to be equal are not told") {
  ModelMaker m;
  m.input("x", {"n", 4}).input("z", {"m", 4}).input("w", {4, "n"}).output("y").output("v");
  choice(m, "Relu");
  m.node("MatMul", {"w", "z"}, {"v"});
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[n,4]\nf32[4,4]\n");
  CHECK(g->symbols.size() == 1);
  CHECK(rules(*g).find("y_d0") == std::string::npos);
}

TEST_CASE("If with a condition that follows from shapes is replaced by its branch") {
  ModelMaker m;
  m.input("x", {"batch", 3}).output("y").ints("two", {2}, true).ints("i1", {1}, true);
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "i1"}, {"width"});
  m.node("Greater", {"width", "two"}, {"c"});
  auto &n = m.node("If", {"c"}, {"y"});
  for (const char *branch : {"then_branch", "else_branch"}) {
    auto *a = n.add_attribute();
    a->set_name(branch);
    a->set_type(onnx::AttributeProto::GRAPH);
    auto *inner = a->mutable_g()->add_node();
    inner->set_op_type(branch == std::string("then_branch") ? "Relu" : "Neg");
    inner->add_input("x");
    inner->add_output(std::string("r_") + branch);
    a->mutable_g()->add_output()->set_name(std::string("r_") + branch);
  }
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[batch,3]\n");
  REQUIRE(g->body.nodes.size() == 1);
  CHECK(g->body.nodes[0].op == OpKind::Relu);
  CHECK(g->value(g->body.outputs[0]).name == "y");
}

// The rule of every operator family refuses attributes, types and shapes that later stages could not survive.
#include "Graph/CheckOperator.h"
#include "Support/Diag.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;

namespace {

const std::string kHead = "graph g\n"
                          "symbol n = 1..64 opt 8 divisor 1\n"
                          "symbol even = 2..64 opt 8 divisor 2\n"
                          "constant %one = i64[1] {1}\n"
                          "constant %three = i64[] {3}\n"
                          "constant %true = bool[] {1}\n"
                          "constant %scales = f32[2] {2.0, 0.5}\n"
                          "constant %sixths = f32[2] {2.0, 1.1666666}\n"
                          "constant %sizes = i64[2] {8, 9}\n"
                          "input %x: f32[4,6]\n"
                          "input %y: f32[6,3]\n"
                          "input %v: f32[6]\n"
                          "input %i: i64[4,6]\n"
                          "input %j: i64[5,6]\n"
                          "input %p: bool[]\n"
                          "input %b: u8[4,6]\n"
                          "input %s: f32[n,6]\n"
                          "input %e: f32[even,6]\n"
                          "input %m: f32[1,4,8,8]\n"
                          "input %w: f32[8,2,3,3]\n"
                          "input %a: f32[3,2,4]\n"
                          "input %aw: f32[1,12,4]\n"
                          "input %ar: f32[1,12,3]\n"
                          "input %grid: f32[1,5,5,2]\n";

std::string firstError(const std::string &nodes) {
  auto g = parseGraph(kHead + nodes + " @k\nreturn %r\n", "t", ConstantStore());
  return g.ok() ? "" : g.errors()[0].text;
}

struct Wrong {
  std::string node, text;
};

} // namespace

TEST_CASE("what is right passes") {
  for (std::string node : {
           "%r: f32[4,3] = MatMul(%x, %y)",
           "%r: f32[n,6] = Add(%s, %v)",
           "%r: f32[4,3], _ = TopK(%x, %three) {axis = 1, largest = 1, sorted = 1}",
           "%r: f32[floordiv(even, 2),12] = Reshape(%e)",
           "%r: f32[4,2] = Slice(%x) {axes = [1], ends = [-9223372036854775808], starts = [-2], "
           "steps "
           "= [-3]}",
           "%r: f32[1,8,4,4] = Conv(%m, %w) {dilations = [1, 1], group = 2, kernel_shape = [3, 3], "
           "pads = [1, 1, 1, 1], strides = [2, 2]}",
           "%r: f32[3,1,2,3] = LSTM(%a, %aw, %ar) {activation_alpha = floats [0.0, 0.0, 0.0], "
           "activation_beta = floats [0.0, 0.0, 0.0], activations = strings [\"Sigmoid\", "
           "\"Tanh\", \"Tanh\"], clip = float 0.0, "
           "direction = \"forward\", hidden_size = 3, input_forget = 0}",
       }) {
    CAPTURE(node);
    CHECK(firstError(node) == "");
  }
}

TEST_CASE("attributes out of range") {
  const std::string pool = "%r: f32[1,4,8,8] = MaxPool(%m) {ceil_mode = 0, ";
  const std::string conv = "%r: f32[1,8,8,8] = Conv(%m, %w) {dilations = [1, 1], ";
  for (const Wrong &w : std::vector<Wrong>{
           {"%r: f32[4,3], _ = TopK(%x, %three) {axis = 3, largest = 1, sorted = 1}",
            "attribute 'axis' is 3, out of range for rank 2"},
           {"%r: f32[4,6] = Softmax(%x) {axis = 3}",
            "attribute 'axis' is 3, out of range for rank 2"},
           {"%r: f32[4,6] = Softmax(%x) {axis = -1}",
            "attribute 'axis' is -1, out of range for rank 2"},
           {"%r: f32[4,6] = ScatterElements(%x, %i, %x) {axis = 4294967296, reduction = \"add\"}",
            "attribute 'axis' is 4294967296, out of range for rank 2"},
           {"%r: f32[4,6] = ScatterElements(%x, %i, %x) {axis = 0, reduction = \"sum\"}",
            "reduction is 'sum'; none, add, mul, max or min is needed"},
           {"%r: f32[4,1] = ReduceSum(%x) {axes = [1, 1], keepdims = 1}",
            "attribute 'axes' must name different axes of rank 2"},
           {"%r: f32[6,4] = Transpose(%x) {perm = [1]}",
            "perm must name each axis of the operand once"},
           {"%r: f32[6,4] = Transpose(%x) {perm = [1, 2]}",
            "perm must name each axis of the operand once"},
           {"%r: f32[8,6] = Concat(%x, %x) {axis = 2}",
            "attribute 'axis' is 2, out of range for rank 2"},
           {"%r: i64[2] = Shape(%x) {end = 3, start = 1}",
            "start and end are out of range for rank 2"},
           {"%r: f32[4,6] = Slice(%x) {axes = [1], ends = [6], starts = [0], steps = [0]}",
            "a step is 0"},
           {"%r: f32[4,6] = Slice(%x) {axes = [2], ends = [6], starts = [0], steps = [1]}",
            "an axis is out of range or given twice"},
           {"%r: f32[6,6] = Pad(%x) {mode = \"reflect\", pads = [4, 0, -2, 0]}",
            "a reflecting pad must be smaller than the axis"},
           {"%r: f32[4,6] = Pad(%x) {mode = \"constant\", pads = [0, 0]}",
            "two pads for each axis are needed"},
           {pool + "dilations = [1, 1], kernel_shape = [0, 1], pads = [0, 0, 0, 0], storage_order "
                   "= 0, strides = [1, 1]}",
            "attribute 'kernel_shape' needs one entry from 1 to 2^31 for each spatial axis"},
           {pool + "dilations = [1, 1], kernel_shape = [2, 2], pads = [2, 0, 0, 0], storage_order "
                   "= 0, strides = [1, 1]}",
            "pads must be smaller than the window, or windows would hold padding only"},
           {conv + "group = 3, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]}",
            "group is 3; it must divide the number of filters"},
           {conv + "group = 2, kernel_shape = [3, 3], pads = [1, 1], strides = [1, 1]}",
            "attribute 'pads' needs two entries from 0 to 2^31 for each spatial axis"},
           {conv + "group = 2, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 0]}",
            "attribute 'strides' needs one entry from 1 to 2^31 for each spatial axis"},
           {"%r: f32[1,1,16,16] = DepthToSpace(%m) {blocksize = 0, mode = \"DCR\"}",
            "blocksize must be between 1 and 2^20 and the data have rank 4"},
           {"%r: f32[1,4,8,8] = LRN(%m) {alpha = float 1.0, beta = float 1.0, bias = float 1.0, "
            "size = 0}",
            "size must be at least 1 and the data have channels"},
           {"%r: f32[4,6] = LpNormalization(%x) {axis = 0, p = 3}", "p must be 1 or 2"},
           {"%r: f32[1,4,5,5] = GridSample(%m, %grid) {align_corners = 0, mode = \"linear\", "
            "padding_mode = \"wrong\"}",
            "padding_mode is 'wrong'; zeros, border or reflection is needed"},
           {"%r: f64[4,6] = BitCast(%x) {to = type f64}",
            "the types must be numbers of equal width"},
           {"%r: f32[4,6] = DequantizeLinear(%b, %v) {axis = 7, block_size = 0}",
            "attribute 'axis' is 7, out of range for rank 2"},
           {"%r: f32[3,1,2,3] = LSTM(%a, %aw, %ar) {activation_alpha = floats [0.0], "
            "activation_beta = floats [0.0], activations = strings [\"Sigmoid\"], clip = float "
            "0.0, direction = "
            "\"forward\", hidden_size = 3, input_forget = 0}",
            "activations must name 3 functions a direction"},
       }) {
    CAPTURE(w.node);
    CHECK(firstError(w.node) == w.text);
  }
}

TEST_CASE("types and shapes that do not fit") {
  for (const Wrong &w : std::vector<Wrong>{
           {"%r: f32[4,6] = Add(%x, %i)", "the operands must have one type"},
           {"%r: f32[4,6] = Exp(%i)", "the operand must have a float type"},
           {"%r: f32[4,6] = Where(%i, %x, %x)",
            "the condition must be bool and both operands of one type"},
           {"%r: f32[4,5] = Relu(%x)", "output 0 is f32[4,5], it must be f32[4,6]"},
           {"%r: f16[4,6] = Relu(%x)", "output 0 is f16[4,6], it must be f32[4,6]"},
           {"%r: f32[4,6] = Add(%x, %s)", "the sizes to broadcast together must be equal: 4 and n"},
           {"%r: f32[n,6] = Add(%s, %e)",
            "the sizes to broadcast together must be equal: n and even"},
           {"%r: f32[6,6] = MatMul(%x, %x)", "the sizes to sum over must be equal: 6 and 4"},
           {"%r: f32[4,4] = Einsum(%x, %x) {equation = \"ij,k->ik\"}",
            "equation 'ij,k->ik': term 1 does not fit its operand"},
           {"%r: f32[4,7] = Reshape(%x)", "the numbers of elements must be equal: 24 and 28"},
           {"%r: f32[floordiv(n, 2),12] = Reshape(%s)",
            "the numbers of elements must be equal: n*6 and floordiv(n, 2)*12"},
           {"%r: f32[4,6] = Expand(%s)", "the sizes to broadcast together must be equal: 4 and n"},
           {"%r: f32[5,6] = GatherElements(%x, %j) {axis = 1}",
            "the indices reach beyond the data"},
           {"%r: f32[3,6], _ = TopK(%s, %three) {axis = 0, largest = 1, sorted = 1}",
            "the axis of which the k largest are taken must be at least 3; it is n, which may be "
            "less"},
           {"%r: f32[4,3] = Slice(%x) {axes = [1], ends = [6], starts = [4], steps = [1]}",
            "output 0 is f32[4,3], it must be f32[4,2]"},
           {"%r: f32[4,6] = ReverseSequence(%x, %one) {batch_axis = 0, time_axis = 1}",
            "one length of type i64 for each batch entry is needed"},
           {"%r: f32[4,2], %t: f32[4,3] = Split(%x) {axis = 1}",
            "the parts' sizes must be as many as the outputs and sum to the axis"},
           {"%r: f32[4,6] = BatchNormalization(%x, %v, %v, %v, %one) {epsilon = float 0.0}",
            "operand 4 must be a float"},
           {"%r: f32[8,6] = Tile(%x, %one)", "one count for each axis is needed"},
           {"_ = Relu(%x) @q\n%r: f32[4,6] = Relu(%x)", "its output is missing"},
           {"%r: f32[4,6] = Sum(%x, _)", "input 1 is missing"},
           {"%r: f32[4,6] = If(%p) @i\n  region () captures ()\n    return %three\n  end\n"
            "  region () captures ()\n    return %three\n  end\n%q: f32[4,6] = Relu(%x)",
            "output 0 is f32[4,6], it must be i64[]"},
           {"%r: f32[4,6] = Loop(%three, %true, %x) @l\n"
            "  region (%it: i64[], %c: bool[], %h: f32[4,5]) captures ()\n    return %c, %h\n  "
            "end\n"
            "%q: f32[4,6] = Relu(%x)",
            "%h is f32[4,5], it must be f32[4,6]"},
       }) {
    CAPTURE(w.node);
    CHECK(firstError(w.node) == w.text);
  }
}

TEST_CASE("sizes are compared by value where their expressions differ") {
  std::vector<Symbol> symbols{{"n", 1, 8, 64, 1}, {"even", 2, 8, 64, 2}};
  DimExpr n = DimExpr::symbol(0), even = DimExpr::symbol(1);
  CHECK(sameSize(floorDiv(even, DimExpr(2)) * DimExpr(2), even, symbols));
  CHECK_FALSE(sameSize(floorDiv(n, DimExpr(2)) * DimExpr(2), n, symbols));
  CHECK_FALSE(sameSize(n, even, symbols));
  CHECK_FALSE(sameSize(n, DimExpr(8), symbols));
  CHECK(sameSize(max(n, DimExpr(1)), n, symbols));
}

namespace {

using Attributes = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

/// The type that the rule gives output 0 of a node over the values of kHead, or what does not fit.
std::string inferred(OpKind op, const std::vector<std::string> &operands, Attributes attributes,
                     Misfit *found = nullptr) {
  auto g = parseGraph(kHead + "return %x\n", "t", ConstantStore());
  REQUIRE(g.ok());
  Node node{op, "k", "", {}, {}, std::move(attributes), {}};
  for (const std::string &name : operands)
    if (name.empty())
      node.inputs.push_back(kNoValue);
    else
      for (size_t i = 0; i < g->values.size(); ++i)
        if (g->values[i].name == name)
          node.inputs.push_back(static_cast<ValueId>(i));
  SizeCheck sizes(g->symbols, SizeCheck::Equality::Exact, [&](const Misfit &m) {
    if (found)
      *found = m;
    return Diagnostic{Diag::BadIr, "", m.text};
  });
  auto types = inferTypes(*g, node, {}, sizes);
  return types.ok() ? typeText((*types)[0].type, (*types)[0].shape, g->symbols)
                    : types.errors()[0].text;
}

Attributes sliceOf(Ints axes, Ints starts, Ints ends, Ints steps) {
  return {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
}

Attributes resizeOf(const std::string &policy) {
  return {{"antialias", int64_t(0)},
          {"axes", Ints{0, 1}},
          {"coordinate_transformation_mode", std::string("half_pixel")},
          {"cubic_coeff_a", -0.75},
          {"exclude_outside", int64_t(0)},
          {"extrapolation_value", 0.0},
          {"keep_aspect_ratio_policy", policy},
          {"mode", std::string("nearest")},
          {"nearest_mode", std::string("floor")}};
}

} // namespace

TEST_CASE("a rule gives the types of outputs from operands and attributes") {
  using enum OpKind;
  CHECK(inferred(MatMul, {"s", "y"}, {}) == "f32[n,3]");
  CHECK(inferred(Equal, {"x", "v"}, {}) == "bool[4,6]");
  CHECK(inferred(Concat, {"s", "e"}, {{"axis", int64_t(0)}}) == "f32[n + even,6]");
  CHECK(inferred(Cast, {"s"}, {{"saturate", int64_t(1)}, {"to", DType::I8}}) == "i8[n,6]");
  CHECK(inferred(ReduceSum, {"s"}, {{"axes", Ints{1}}, {"keepdims", int64_t(1)}}) == "f32[n,1]");
  CHECK(inferred(Conv, {"m", "w"},
                 {{"dilations", Ints{1, 1}},
                  {"group", int64_t(2)},
                  {"kernel_shape", Ints{3, 3}},
                  {"pads", Ints{0, 0, 0, 0}},
                  {"strides", Ints{2, 2}}}) == "f32[1,8,3,3]");
  const DimExpr left = max(DimExpr::symbol(0) - DimExpr(2), DimExpr(0));
  CHECK(inferred(Slice, {"s"}, sliceOf({0, 1}, {2, -1}, {INT64_MAX, INT64_MIN}, {3, -2})) ==
        typeText(DType::F32, {ceilDiv(left, DimExpr(3)), DimExpr(3)}, {{"n", 1, 8, 64, 1}}));
  CHECK(inferred(Slice, {"s"}, sliceOf({0, 1}, {-1, 8}, {INT64_MAX, 9}, {1, 1})) == "f32[1,0]");
  CHECK(inferred(Resize, {"x", "", "scales"}, resizeOf("stretch")) == "f32[8,3]");
  CHECK(inferred(Resize, {"x", "", "", "sizes"}, resizeOf("stretch")) == "f32[8,9]");
  CHECK(inferred(Resize, {"x", "", "", "sizes"}, resizeOf("not_larger")) == "f32[6,9]");
  CHECK(inferred(Resize, {"x", "", "", "sizes"}, resizeOf("not_smaller")) == "f32[8,12]");
  CHECK(inferred(Resize, {"x", "", "sixths"}, resizeOf("stretch")) == "f32[8,7]");
  CHECK(inferred(Resize, {"s", "", "scales"}, resizeOf("stretch")) ==
        "the axes to resize must have fixed sizes");
}

TEST_CASE("what does not fit is told with its sizes") {
  using enum OpKind;
  Misfit m;
  inferred(Add, {"s", "e"}, {}, &m);
  CHECK(m.kind == Misfit::Kind::Unequal);
  CHECK(m.sizes == fusec::Shape{DimExpr::symbol(0), DimExpr::symbol(1)});
  inferred(TopK, {"s", "three"},
           {{"axis", int64_t(0)}, {"largest", int64_t(1)}, {"sorted", int64_t(1)}}, &m);
  CHECK(m.kind == Misfit::Kind::TooSmall);
  CHECK(m.number == 3);
  inferred(Transpose, {"x"}, {{"perm", Ints{1, 1}}}, &m);
  CHECK(m.kind == Misfit::Kind::Attribute);
  inferred(MatMul, {"x", "x"}, {}, &m);
  CHECK(m.kind == Misfit::Kind::Operands); // no symbol makes 6 and 4 equal
}

TEST_CASE("sizes of a model are equal as expressions, those of a pass by value") {
  std::vector<Symbol> symbols{{"n", 1, 8, 4096, 1}};
  const DimExpr n = DimExpr::symbol(0), bounded = min(n, DimExpr(4000));
  auto sizes = [&](SizeCheck::Equality equality) {
    return SizeCheck(symbols, equality,
                     [](const Misfit &m) { return Diagnostic{Diag::BadIr, "", m.text}; });
  };
  CHECK(sizes(SizeCheck::Equality::Sampled).sameDim(n, bounded, "sizes").ok());
  CHECK_FALSE(sizes(SizeCheck::Equality::Exact).sameDim(n, bounded, "sizes").ok());
}

TEST_CASE("operands broadcast as their sizes say where no sample is a run that passes the tests") {
  // Runs have n = 1 and k = 2, which no sample has: nothing then speaks against n = k.
  const std::string head = "graph g\n"
                           "symbol n = 1..64 opt 8 divisor 1\n"
                           "symbol k = 1..64 opt 8 divisor 1\n"
                           "rule tested equal [max(n, k), n*2] by \"a\" \"MatMul\" \"so\"\n"
                           "rule tested either [n, k] by \"b\" \"Add\" \"so\"\n"
                           "input %x: f32[n]\n"
                           "input %z: f32[k]\n"
                           "input %t: f32[n*2]\n"
                           "input %c: bool[n]\n"
                           "input %p: f32[n,1,3]\n"
                           "input %q: f32[k,3,1]\n";
  auto error = [&](const std::string &node) {
    auto g = parseGraph(head + node + " @k\nreturn %r\n", "t", ConstantStore());
    return g.ok() ? "" : g.errors()[0].text;
  };
  for (const char *node : {
           "%r: f32[n*2] = Add(%x, %z)",
           "%r: f32[n*2] = Sum(%x, %z, %t)",
           "%r: f32[n*2] = Where(%c, %z, %t)",
           "%r: f32[n*2,1,1] = MatMul(%p, %q)",
       }) {
    CAPTURE(node);
    CHECK(error(node) == "");
  }
  CHECK(error("%r: f32[k + 64] = Add(%x, %z)") ==
        "output 0 is f32[k + 64], it must be f32[max(n, k)]");
  CHECK(error("%r: f32[n*2] = Relu(%x)") == "output 0 is f32[n*2], it must be f32[n]");
}

TEST_CASE("a diagonal needs equal sizes, other axes of a letter broadcast") {
  std::vector<Symbol> symbols;
  SizeCheck sizes(symbols, SizeCheck::Equality::Exact,
                  [](const Misfit &m) { return Diagnostic{Diag::BadIr, "", m.text}; });
  auto einsum = [&](const std::vector<std::string> &terms, const std::vector<Shape> &shapes) {
    std::vector<const Shape *> list;
    for (const Shape &s : shapes)
      list.push_back(&s);
    return sizes.einsum(terms, list, "ik", [](char c) { return std::string(1, c); });
  };
  auto both = einsum({"ij", "jk"}, {{2, 1}, {3, 4}});
  REQUIRE(both.ok());
  CHECK((*both)['j'] == DimExpr(3));
  CHECK_FALSE(einsum({"ii"}, {{1, 3}}).ok());
}

// The integer, rounding and NaN rules of lib/Reference/README.md, each on a graph of one node.
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_all.hpp>

#include <cmath>

using namespace fusec;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TensorValue ints(DType t, std::vector<int64_t> dims, std::vector<int64_t> v) {
  TensorValue out(t, std::move(dims));
  out.ints = std::move(v);
  return out;
}
TensorValue floats(std::vector<int64_t> dims, std::vector<double> v, DType t = DType::F32) {
  TensorValue out(t, std::move(dims));
  out.floats = std::move(v);
  return out;
}

/// Parses `text` with the inputs' declarations put in front, runs it and returns output 0.
TensorValue run(const std::string &text, const std::vector<TensorValue> &inputs) {
  std::string source = "graph g\n";
  for (size_t i = 0; i < inputs.size(); ++i) {
    source += "input %x" + std::to_string(i) + ": " + std::string(name(inputs[i].type)) + "[";
    for (size_t d = 0; d < inputs[i].dims.size(); ++d)
      source += (d ? "," : "") + std::to_string(inputs[i].dims[d]);
    source += "]\n";
  }
  auto graph = parseGraph(source + text + "\nreturn %y\n", "test", ConstantStore());
  INFO(source << text);
  INFO((graph.ok() ? "" : format(graph.errors()[0])));
  REQUIRE(graph.ok());
  REQUIRE(verify(*graph).ok());
  auto out = evaluate(*graph, inputs);
  INFO((out.ok() ? "" : format(out.errors()[0])));
  REQUIRE(out.ok());
  return (*out)[0];
}

void checkFloats(const TensorValue &t, const std::vector<double> &expected) {
  REQUIRE(t.floats.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    CHECK((t.floats[i] == expected[i] || (std::isnan(t.floats[i]) && std::isnan(expected[i]))));
  }
}

} // namespace

TEST_CASE("integers wrap, and no division traps") {
  auto a = ints(DType::I8, {4}, {-128, 127, 5, -7}), b = ints(DType::I8, {4}, {-1, 1, 0, 2});
  CHECK(run("%y: i8[4] = Div(%x0, %x1) @n", {a, b}).ints == std::vector<int64_t>{-128, 127, 0, -3});
  CHECK(run("%y: i8[4] = Add(%x0, %x1) @n", {a, b}).ints == std::vector<int64_t>{127, -128, 5, -5});
  CHECK(run("%y: i8[4] = Mod(%x0, %x1) {fmod = 0} @n", {a, b}).ints ==
        std::vector<int64_t>{0, 0, 0, 1});
  CHECK(run("%y: i8[4] = Mod(%x0, %x1) {fmod = 1} @n", {a, b}).ints ==
        std::vector<int64_t>{0, 0, 0, -1});
  CHECK(run("%y: i8[4] = Neg(%x0) @n", {a}).ints == std::vector<int64_t>{-128, -127, -5, 7});
  CHECK(run("%y: i8[4] = Abs(%x0) @n", {a}).ints == std::vector<int64_t>{-128, 127, 5, 7});
  auto m = ints(DType::I64, {2}, {INT64_MIN, INT64_MIN}), n = ints(DType::I64, {2}, {-1, 0});
  CHECK(run("%y: i64[2] = Div(%x0, %x1) @n", {m, n}).ints == std::vector<int64_t>{INT64_MIN, 0});
  CHECK(run("%y: i64[2] = Mod(%x0, %x1) {fmod = 0} @n", {m, n}).ints == std::vector<int64_t>{0, 0});
  auto u = ints(DType::U64, {2}, {-1, 7}), v = ints(DType::U64, {2}, {2, 2});
  CHECK(run("%y: u64[2] = Div(%x0, %x1) @n", {u, v}).ints == std::vector<int64_t>{INT64_MAX, 3});
  CHECK(run("%y: bool[2] = Less(%x0, %x1) @n", {u, v}).ints == std::vector<int64_t>{0, 0});
}

TEST_CASE("shifts by the width or more give 0") {
  auto a = ints(DType::U8, {4}, {255, 255, 1, 1}), b = ints(DType::U8, {4}, {8, 200, 7, 0});
  CHECK(run("%y: u8[4] = BitShift(%x0, %x1) {direction = \"LEFT\"} @n", {a, b}).ints ==
        std::vector<int64_t>{0, 0, 128, 1});
  CHECK(run("%y: u8[4] = BitShift(%x0, %x1) {direction = \"RIGHT\"} @n", {a, b}).ints ==
        std::vector<int64_t>{0, 0, 0, 1});
}

TEST_CASE("casts of floats to integers truncate and wrap") {
  auto x = floats({7}, {300.7, -1.5, kNan, kInf, -kInf, 1e30, -0.9});
  CHECK(run("%y: u8[7] = Cast(%x0) {saturate = 1, to = type u8} @n", {x}).ints ==
        std::vector<int64_t>{44, 255, 0, 0, 0, 0, 0});
  CHECK(run("%y: i64[7] = Cast(%x0) {saturate = 1, to = type i64} @n", {x}).ints ==
        std::vector<int64_t>{300, -1, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 0});
  CHECK(run("%y: bool[7] = Cast(%x0) {saturate = 1, to = type bool} @n", {x}).ints ==
        std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1});
  CHECK(run("%y: u64[7] = Cast(%x0) {saturate = 1, to = type u64} @n", {x}).ints ==
        std::vector<int64_t>{300, -1, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 0});
  auto large = floats({4}, {0x1p63, 0x1.8p63, 0x1.fffffep63, 0x1p64});
  CHECK(run("%y: u64[4] = Cast(%x0) {saturate = 1, to = type u64} @n", {large}).ints ==
        std::vector<int64_t>{INT64_MIN, int64_t(-0x4000000000000000), -(int64_t(1) << 40),
                             INT64_MIN});
  CHECK(run("%y: u32[4] = Cast(%x0) {saturate = 1, to = type u32} @n", {large}).ints ==
        std::vector<int64_t>{0, 0, 0, 0});
}

TEST_CASE("samples of a grid that is far outside") {
  auto image = floats({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  auto grid = floats({1, 1, 7, 2},
                     {3e38, 0, -3e38, 0, 0, 1e30, kInf, -kInf, kNan, 0, 1e19, -1e19, -2.5, 7});
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *corners : {"0", "1"})
      for (const char *padding : {"zeros", "border", "reflection"}) {
        INFO(mode << " " << corners << " " << padding);
        auto y =
            run(std::string("%y: f32[1,1,1,7] = GridSample(%x0, %x1) {align_corners = ") + corners +
                    ", mode = \"" + mode + "\", padding_mode = \"" + padding + "\"} @n",
                {image, grid});
        for (size_t i = 0; i < 7; ++i)
          if (std::string(padding) == "zeros")
            CHECK(y.floats[i] == 0);
          else // cubic weights overshoot a little
            CHECK((y.floats[i] > -0.5 && y.floats[i] < 7.5));
      }
}

TEST_CASE("large integers round once to floats") {
  // 2^60 + 2^52 + 1 lies just above the middle of two bf16 values; a detour through double loses the 1.
  auto x = ints(DType::I64, {2}, {(int64_t(1) << 60) + (int64_t(1) << 52) + 1, INT64_MIN});
  checkFloats(run("%y: bf16[2] = Cast(%x0) {saturate = 1, to = type bf16} @n", {x}),
              {0x1p60 + 0x1p53, -0x1p63});
}

TEST_CASE("NaN goes through maxima, minima and clamps") {
  auto x = floats({3}, {kNan, 1, -2}), y = floats({3}, {0, kNan, 0});
  checkFloats(run("%y: f32[3] = Max(%x0, %x1) @n", {x, y}), {kNan, kNan, 0});
  checkFloats(run("%y: f32[3] = Min(%x0, %x1) @n", {x, y}), {kNan, kNan, -2});
  checkFloats(run("%y: f32[3] = Relu(%x0) @n", {x}), {kNan, 1, 0});
  checkFloats(run("%y: f32[3] = Clip(%x0, %x1, %x2) @n", {x, floats({}, {0}), floats({}, {0.5})}),
              {kNan, 0.5, 0});
  checkFloats(run("%y: f32[] = ReduceMax(%x0) {axes = [0], keepdims = 0} @n", {x}), {kNan});
  checkFloats(run("%y: f32[] = ReduceMin(%x0) {axes = [0], keepdims = 0} @n", {x}), {kNan});
  CHECK(run("%y: i64[] = ArgMin(%x0) {axis = 0, keepdims = 0, select_last_index = 0} @n",
            {floats({3}, {1, kNan, 0})})
            .ints == std::vector<int64_t>{1});
}

TEST_CASE("empty reductions give the neutral element") {
  auto x = floats({2, 0}, {});
  auto reduce = [&](const std::string &op) {
    return run("%y: f32[2] = " + op + "(%x0) {axes = [1], keepdims = 0} @n", {x});
  };
  checkFloats(reduce("ReduceSum"), {0, 0});
  checkFloats(reduce("ReduceProd"), {1, 1});
  checkFloats(reduce("ReduceMax"), {-kInf, -kInf});
  checkFloats(reduce("ReduceMin"), {kInf, kInf});
  checkFloats(reduce("ReduceMean"), {kNan, kNan});
  checkFloats(reduce("ReduceLogSumExp"), {-kInf, -kInf});
  auto i = ints(DType::I32, {2, 0}, {});
  CHECK(run("%y: i32[2] = ReduceMax(%x0) {axes = [1], keepdims = 0} @n", {i}).ints ==
        std::vector<int64_t>{INT32_MIN, INT32_MIN});
}

TEST_CASE("softmax of nothing but -inf is NaN, and large inputs do not overflow") {
  checkFloats(
      run("%y: f32[2,2] = Softmax(%x0) {axis = 1} @n", {floats({2, 2}, {-kInf, -kInf, 1e4, 1e4})}),
      {kNan, kNan, 0.5, 0.5});
  checkFloats(run("%y: f32[3,2] = Softmax(%x0) {axis = 1, zero_masked = 1} @n",
                  {floats({3, 2}, {-kInf, -kInf, 1e4, 1e4, kNan, -kInf})}),
              {0, 0, 0.5, 0.5, kNan, kNan});
}

TEST_CASE("quantisation saturates and rounds ties to even") {
  auto x = floats({6}, {0.5, 1.5, 2.5, 1000, -1000, kNan});
  auto scale = floats({}, {1}), zero = ints(DType::U8, {}, {10});
  CHECK(run("%y: u8[6] = QuantizeLinear(%x0, %x1, %x2) {axis = 0, block_size = 0, saturate = 1} @n",
            {x, scale, zero})
            .ints == std::vector<int64_t>{10, 12, 12, 255, 0, 10});
}

TEST_CASE("a loop stacks its scan outputs") {
  const char *text = R"(%s: i64[], %y: i64[3] = Loop(%x0, _, %x1) @loop
  region (%i: i64[], %c: bool[], %v: i64[]) captures ()
    %w: i64[] = Add(%v, %i) @add
    %k: bool[] = Identity(%c) @keep
    return %k, %w, %w
  end)";
  auto y = run(text, {ints(DType::I64, {}, {3}), ints(DType::I64, {}, {10})});
  CHECK(y.ints == std::vector<int64_t>{10, 11, 13});
}

TEST_CASE("an index outside its axis is an error, not a crash") {
  auto graph = parseGraph("graph g\ninput %x: f32[2]\ninput %i: i64[1]\n"
                          "%y: f32[1] = Gather(%x, %i) {axis = 0} @pick\nreturn %y\n",
                          "test", ConstantStore());
  REQUIRE(graph.ok());
  auto out = evaluate(*graph, {floats({2}, {1, 2}), ints(DType::I64, {1}, {INT64_MIN})});
  REQUIRE_FALSE(out.ok());
  CHECK(format(out.errors()[0]) ==
        "error[E3108] node 'pick' (Gather): index -9223372036854775808 is outside an "
        "axis of size 2");
}

TEST_CASE("inputs must have the types and shapes that the graph declares") {
  auto graph =
      parseGraph("graph g\nsymbol n = 1..4 opt 2 divisor 1\ninput %x: f32[n]\ninput %z: f32[n*2]\n"
                 "%y: f32[n] = Neg(%x) @n\nreturn %y\n",
                 "test", ConstantStore());
  REQUIRE(graph.ok());
  CHECK(evaluate(*graph, {floats({2}, {1, 2}), floats({4}, {1, 2, 3, 4})}).ok());
  CHECK_FALSE(evaluate(*graph, {floats({2}, {1, 2}), floats({3}, {1, 2, 3})}).ok());
  CHECK_FALSE(
      evaluate(*graph, {floats({5}, {1, 2, 3, 4, 5}), floats({10}, std::vector<double>(10))}).ok());
  CHECK_FALSE(evaluate(*graph, {ints(DType::I32, {2}, {1, 2}), floats({4}, {1, 2, 3, 4})}).ok());
  CHECK_FALSE(evaluate(*graph, {}).ok());
}

TEST_CASE("a slice backwards starts at an element and may end before the first") {
  auto x = floats({5}, {0, 1, 2, 3, 4});
  auto sliced = [&](int64_t size, const std::string &start, const std::string &end,
                    const std::string &step) {
    return run("%y: f32[" + std::to_string(size) + "] = Slice(%x0) {axes = [0], ends = [" + end +
                   "], starts = [" + start + "], steps = [" + step + "]} @n",
               {x});
  };
  checkFloats(sliced(1, "-9", "-99", "-1"), {0});
  checkFloats(sliced(1, "-6", "-9223372036854775808", "-2"), {0});
  checkFloats(sliced(0, "-9", "0", "-1"), {});
  checkFloats(sliced(2, "9", "-5", "-3"), {4, 1});
  checkFloats(sliced(5, "-9", "9", "1"), {0, 1, 2, 3, 4});
  CHECK(run("%y: f32[0] = Slice(%x0) {axes = [0], ends = [-9], starts = [0], steps = [-1]} @n",
            {floats({0}, {})})
            .dims == std::vector<int64_t>{0});
}

TEST_CASE("a run that breaks a rule of sizes is refused by the node's name") {
  ConstantStore store;
  auto g = parseGraph("graph g\n"
                      "symbol n = 1..99 opt 1 divisor 1\n"
                      "symbol m = 1..99 opt 1 divisor 1\n"
                      "inferred k = [n] of (\"z\" 0)\n"
                      "rule equal [n, k] by \"sum\" \"Add\" \"they must be equal\"\n"
                      "rule tested broadcast [m, 3] by \"add\" \"Add\" \"one or three\"\n"
                      "input %x: f32[n,3]\n"
                      "input %y: f32[m]\n"
                      "input %z: f32[n,1]\n"
                      "%s: f32[n,3] = Add(%x, %z) @sum\n"
                      "%r: f32[n,3] = Add(%s, %y) @add\n"
                      "return %r\n",
                      "t", store);
  INFO((g.ok() ? "" : format(g.errors()[0])));
  REQUIRE(g.ok());
  auto said = [&](int64_t n, int64_t m, int64_t k) {
    auto out = evaluate(*g, {TensorValue(DType::F32, {n, 3}), TensorValue(DType::F32, {m}),
                             TensorValue(DType::F32, {k, 1})});
    return out.ok() ? std::string() : out.errors()[0].text;
  };
  CHECK(said(4, 3, 4) == "");
  CHECK(said(4, 1, 4) == "");
  CHECK(said(4, 2, 4) ==
        "node 'add' (Add): one or three: 'm' is 2 (dimension 0 of input 'y') and 3");
  CHECK(said(4, 3, 5) ==
        "node 'sum' (Add): they must be equal: 'n' is 4 (dimension 0 of input 'x') "
        "and 'k' is 5 (dimension 0 of input 'z')");
}

// Quantisation, recurrent layers, losses, control flow; and what is refused.
#include "LowerFixture.h"

#include <limits>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("lowering: quantisation") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    std::vector<int64_t> dims = r.dims(r.integer(1, 3));
    auto axis = static_cast<size_t>(r.integer(0, static_cast<int64_t>(dims.size()) - 1));
    DType t = r.pick<DType>({DType::U8, DType::I8, DType::I16, DType::U16});
    double low = isSigned(t) ? -20 : 0;
    int64_t block = r.chance(40) ? r.integer(1, 3) : 0;
    std::vector<int64_t> scales{dims[axis]};
    if (block) {
      scales = dims;
      scales[axis] = (dims[axis] + block - 1) / block;
    } else if (r.chance(40)) {
      scales = {};
    }
    std::map<std::string, Attribute> attributes{{"axis", static_cast<int64_t>(axis)},
                                                {"block_size", block}};
    std::vector<ValueId> in{m.input(r.tensor(t, dims, low, 60)),
                            m.input(r.tensor(DType::F32, scales, 0.1, 2))};
    if (r.chance(60))
      in.push_back(m.input(r.tensor(t, scales, low, 20)));
    m.node(OpKind::DequantizeLinear, in, attributes, {DType::F32});
    attributes["saturate"] = int64_t(1);
    m.node(OpKind::QuantizeLinear,
           {m.input(r.tensor(DType::F32, dims, -60, 300)),
            m.input(r.tensor(DType::F32, scales, 0.1, 2)), m.input(r.tensor(t, scales, low, 20))},
           attributes, {t});
    m.node(OpKind::DynamicQuantizeLinear,
           {m.input(r.tensor(DType::F32, dims, r.chance(50) ? -3 : 1, 5))}, {},
           {DType::U8, DType::F32, DType::U8});
    m.check();
  });
}

TEST_CASE("lowering: integer contractions") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    int64_t rows = r.integer(1, 4), columns = r.integer(1, 4), depth = r.integer(1, 6);
    auto byte = [&](std::vector<int64_t> dims) {
      return m.input(r.tensor(DType::U8, std::move(dims), 0, 255));
    };
    auto real = [&](std::vector<int64_t> dims) {
      return m.input(r.tensor(DType::F32, std::move(dims), 0.01, 0.1));
    };
    ValueId a = byte({2, rows, depth}), b = byte({depth, columns});
    m.node(OpKind::MatMulInteger, {a, b}, {}, {DType::I32});
    m.node(OpKind::MatMulInteger,
           {a, b, byte(r.chance(50) ? std::vector<int64_t>{} : std::vector{rows}),
            byte(r.chance(50) ? std::vector<int64_t>{} : std::vector{columns})},
           {}, {DType::I32});
    std::vector<int64_t> one, perColumn{columns};
    m.node(OpKind::QLinearMatMul,
           {a, real(one), byte(one), b, real(r.chance(50) ? one : perColumn), byte(one), real(one),
            byte(one)},
           {}, {DType::U8});
    int64_t group = r.integer(1, 2), filters = group * r.integer(1, 2), perGroup = r.integer(1, 2);
    std::map<std::string, Attribute> attributes{{"pads", std::vector<int64_t>{1, 0, 0, 1}},
                                                {"strides", std::vector<int64_t>{1, 2}},
                                                {"dilations", std::vector<int64_t>{1, 1}},
                                                {"group", group},
                                                {"kernel_shape", std::vector<int64_t>{2, 2}}};
    ValueId image = byte({1, group * perGroup, 4, 5}), weight = byte({filters, perGroup, 2, 2});
    Shape out{1, filters, 4, 3};
    m.node(OpKind::ConvInteger, {image, weight, byte(one)}, attributes, {DType::I32}, {out});
    m.node(OpKind::QLinearConv,
           {image, real(one), byte(one), weight, real({filters}), byte(one), real(one), byte(one),
            m.input(r.tensor(DType::I32, {filters}, -500, 500))},
           attributes, {DType::U8}, {out});
    m.check();
  });
}

namespace {

void recurrentCase(Random &r, OpKind op, int64_t gates, std::vector<std::string> defaults) {
  GraphMaker m;
  m.tolerance = 2e-4;
  std::string direction = r.pick<std::string>({"forward", "reverse", "bidirectional"});
  int64_t dirs = direction == "bidirectional" ? 2 : 1;
  int64_t steps = r.integer(1, 5), batch = r.integer(1, 3), in = r.integer(1, 4),
          hidden = r.integer(1, 4);
  auto tensor = [&](std::vector<int64_t> dims) {
    TensorValue v = r.tensor(DType::F32, std::move(dims), -1, 1);
    return r.chance(50) ? m.constant(v) : m.input(v);
  };
  std::vector<ValueId> inputs{m.input(r.tensor(DType::F32, {steps, batch, in}, -1, 1)),
                              tensor({dirs, gates * hidden, in}),
                              tensor({dirs, gates * hidden, hidden})};
  auto optional = [&](auto make) { inputs.push_back(r.chance(60) ? make() : kNoValue); };
  optional([&] { return tensor({dirs, 2 * gates * hidden}); });
  optional([&] { return m.input(r.tensor(DType::I32, {batch}, 0, static_cast<double>(steps))); });
  optional([&] { return tensor({dirs, batch, hidden}); });
  if (op == OpKind::LSTM) {
    optional([&] { return tensor({dirs, batch, hidden}); });
    optional([&] { return tensor({dirs, 3 * hidden}); });
  }
  while (inputs.back() == kNoValue)
    inputs.pop_back();
  std::vector<std::string> activations;
  for (int64_t d = 0; d < dirs; ++d)
    for (const std::string &name : defaults)
      activations.push_back(
          r.chance(60) ? name : r.pick<std::string>({"Relu", "Softsign", "Sigmoid", "Tanh"}));
  const std::vector<double> none(activations.size(), 0.0);
  std::map<std::string, Attribute> attributes{
      {"direction", direction},   {"hidden_size", hidden},   {"activations", activations},
      {"activation_alpha", none}, {"activation_beta", none}, {"clip", r.chance(30) ? 0.7 : 0.0}};
  if (op == OpKind::LSTM)
    attributes["input_forget"] = r.integer(0, 1);
  if (op == OpKind::GRU)
    attributes["linear_before_reset"] = r.integer(0, 1);
  m.node(op, inputs, attributes, std::vector<DType>(op == OpKind::LSTM ? 3 : 2, DType::F32));
  m.check();
}

} // namespace

TEST_CASE("lowering: recurrent layers with every optional operand") {
  forSeeds(40, [&](Random &r) {
    recurrentCase(r, OpKind::LSTM, 4, {"Sigmoid", "Tanh", "Tanh"});
    recurrentCase(r, OpKind::GRU, 3, {"Sigmoid", "Tanh"});
    recurrentCase(r, OpKind::RNN, 1, {"Tanh"});
  });
}

TEST_CASE("lowering: losses, determinants, columns") {
  forSeeds(30, [&](Random &r) {
    GraphMaker m;
    m.tolerance = 1e-3;
    std::vector<int64_t> scores{2, 4}, targets{2};
    for (int64_t d = r.integer(0, 2); d > 0; --d) {
      scores.push_back(r.integer(1, 3));
      targets.push_back(scores.back());
    }
    ValueId x = m.input(r.tensor(DType::F32, scores, -3, 3)),
            c = m.input(r.tensor(DType::I64, targets, 0, 3));
    ValueId w = m.input(r.tensor(DType::F32, {4}, 0.5, 2));
    for (const char *reduction : {"none", "sum", "mean"}) {
      std::map<std::string, Attribute> attributes{{"reduction", std::string(reduction)}};
      if (r.chance(50))
        attributes["ignore_index"] = int64_t(5);
      m.node(OpKind::NegativeLogLikelihoodLoss, {x, c, w}, attributes, {DType::F32});
      m.node(OpKind::SoftmaxCrossEntropyLoss, {x, c}, attributes, {DType::F32, DType::F32});
    }
    int64_t size = r.integer(1, 4);
    m.node(OpKind::Det, {m.input(r.tensor(DType::F32, {2, size, size}, -2, 2))}, {}, {DType::F32});
    std::vector<int64_t> stride{r.integer(1, 2), 1}, pads{0, r.integer(0, 1), 0, 0};
    int64_t columns = ((5 - 2) / stride[0] + 1) * (4 + pads[1] - 3 + 1);
    m.node(
        OpKind::Col2Im,
        {m.input(r.tensor(DType::F32, {1, 2 * 6, columns}, -2, 2)), m.ints({5, 4}), m.ints({2, 3})},
        {{"dilations", std::vector<int64_t>{1, 1}}, {"pads", pads}, {"strides", stride}},
        {DType::F32});
    m.check();
  });
}

namespace {

void checkText(const std::string &text, const std::vector<TensorValue> &inputs) {
  ConstantStore store;
  auto g = parseGraph(text, "test", store);
  if (!g.ok())
    FAIL(problems(g.errors()));
  GraphMaker m;
  m.graph = std::move(*g);
  m.inputs = inputs;
  m.check();
}
TensorValue number(DType t, double v) {
  TensorValue x(t, {});
  x.setNumber(0, v);
  return x;
}

} // namespace

TEST_CASE("lowering: a softmax that makes zeros of masked lines") {
  for (DType t : {DType::F32, DType::F16, DType::F64}) {
    GraphMaker m;
    TensorValue x = Random(3).tensor(t, {3, 4, 5}, -20, 20);
    for (size_t i = 2; i < x.floats.size(); i += 5) // all of three lines
      x.floats[i] = -std::numeric_limits<double>::infinity();
    x.floats[1] = x.floats[2]; // one element of a fourth
    m.node(OpKind::Softmax, {m.input(x)}, {{"axis", int64_t(1)}, {"zero_masked", int64_t(1)}}, {t});
    m.check();
  }
}

TEST_CASE("lowering: quotients that are rounded behind movement and regions are divided") {
  const std::vector<std::string> bodies = {
      "%q: f32[20, 20] = Div(%x, %c) @q\n%m: f32[20, 20] = Trilu(%q) {upper = 1} @m\n"
      "%y: f32[20, 20] = Floor(%m) @y\n",
      "%q: f32[20, 20] = Div(%x, %c) @q\n%m: f32[20, 20] = LeakyRelu(%q) {alpha = float 0.5} @m\n"
      "%y: f32[20, 20] = Floor(%m) @y\n",
      "%q: f32[20, 20] = Div(%x, %c) @q\n%m: f32[1, 20] = ReduceMax(%q) {axes = [0], keepdims = 1} "
      "@m\n"
      "%y: f32[1, 20] = Floor(%m) @y\n",
      "%m: f32[20, 20] = If(%p) @if\n  region () captures (%x)\n"
      "    %q: f32[20, 20] = Div(%x, %c) @q\n    return %q\n  end\n"
      "  region () captures (%x)\n    return %x\n  end\n%y: f32[20, 20] = Floor(%m) @y\n"};
  TensorValue x(DType::F32, {20, 20});
  for (size_t i = 0; i < x.floats.size(); ++i)
    x.floats[i] = static_cast<double>(static_cast<float>(i) * 0.01F);
  for (const std::string &body : bodies) {
    const std::string text = "graph rounded\nconstant %c = f32[] {0.00999999977648258}\n"
                             "input %x: f32[20, 20]\ninput %p: bool[]\n" +
                             body + "return %y\n";
    checkText(text, {x, number(DType::Bool, 1)});
    ConstantStore store;
    const auto graph = parseGraph(text, "test", store);
    REQUIRE(graph.ok());
    const auto program = lowerGraph(*graph);
    REQUIRE(program.ok());
    CHECK(print(*program, nullptr).find("div(") != std::string::npos);
  }
}

TEST_CASE("lowering: both branches of If, with a capture, a constant and the outer value itself") {
  for (int condition : {0, 1}) {
    Random r(1);
    checkText(R"(graph branch
constant %k = f32[2] {1.0, 2.0}
input %c: bool[]
input %x: f32[2]
%a: f32[2] = Exp(%x) @e
%y: f32[2], %z: f32[2] = If(%c) @if
  region () captures (%x, %a)
    %t: f32[2] = Add(%a, %x) @t
    return %t, %k
  end
  region () captures (%x)
    return %x, %x
  end
return %y, %z
)",
              {number(DType::Bool, condition), r.tensor(DType::F32, {2}, -1, 1)});
  }
}

TEST_CASE("lowering: a loop that swaps its values and stacks one") {
  Random r(2);
  checkText(R"(graph repeat
constant %trips = i64[] {5}
constant %true = bool[] {1}
input %x: f32[2]
input %y: f32[2]
%p: f32[2], %q: f32[2], %s: f32[5,2] = Loop(%trips, %true, %x, %y) @loop
  region (%i: i64[], %go: bool[], %a: f32[2], %b: f32[2]) captures ()
    %f: f32[] = Cast(%i) {saturate = 1, to = type f32} @f
    %sum: f32[2] = Add(%a, %f) @sum
    return %go, %b, %sum, %a
  end
return %p, %q, %s
)",
            {r.tensor(DType::F32, {2}, -1, 1), r.tensor(DType::F32, {2}, -1, 1)});
}

TEST_CASE("lowering: a loop that ends on a condition of the data") {
  for (double limit : {-1.0, 3.0, 100.0})
    checkText(R"(graph until
constant %trips = i64[] {7}
constant %one = f32[] {1.0}
input %limit: f32[]
input %x: f32[]
%start: bool[] = Less(%x, %limit) @start
%y: f32[] = Loop(%trips, %start, %x) @loop
  region (%i: i64[], %go: bool[], %a: f32[]) captures (%limit)
    %next: f32[] = Add(%a, %one) @next
    %more: bool[] = Less(%next, %limit) @more
    return %more, %next
  end
return %y
)",
              {number(DType::F32, limit), number(DType::F32, 0)});
}

TEST_CASE("lowering: Scan over given axes and directions") {
  Random r(3);
  for (const char *directions : {"[0]", "[1]"})
    checkText(std::string(R"(graph fold
input %h: f32[2]
input %x: f32[2,3]
%last: f32[2], %all: f32[2,3] = Scan(%h, %x) {num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = )") +
                  directions + R"(, scan_output_axes = [1], scan_output_directions = )" +
                  directions + R"(} @scan
  region (%a: f32[2], %b: f32[2]) captures ()
    %s: f32[2] = Add(%a, %b) @s
    return %s, %s
  end
return %last, %all
)",
              {r.tensor(DType::F32, {2}, -1, 1), r.tensor(DType::F32, {2, 3}, -1, 1)});
}

TEST_CASE("lowering: an input and a constant as outputs") {
  checkText(R"(graph through
constant %k = i32[2] {3, 4}
input %x: f32[]
return %x, %k, %x
)",
            {number(DType::F32, 2)});
}

TEST_CASE("lowering: everything that has no equations is reported at once") {
  GraphMaker m;
  Random r(4);
  ValueId x = m.input(r.tensor(DType::F32, {7, 7}, 0, 1));
  m.node(OpKind::Det, {x}, {}, {DType::F32}, {Shape{}});
  ValueId y = m.node(OpKind::Relu, {x}, {}, {DType::F32})[0];
  m.node(OpKind::Det, {y}, {}, {DType::F32}, {Shape{}});
  auto program = lowerGraph(m.graph);
  REQUIRE_FALSE(program.ok());
  REQUIRE(program.errors().size() == 2);
  CHECK(format(program.errors()[0]) ==
        "error[E4001] test: node 'Det_0' (Det): matrices up to 5 by 5 only; "
        "inputs: f32[7,7]");
  CHECK(format(program.errors()[1]) ==
        "error[E4001] test: node 'Det_2' (Det): matrices up to 5 by 5 only; "
        "inputs: f32[7,7]");
}

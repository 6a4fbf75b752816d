// Element-wise operators, reductions and the softmax family: the lowered equations compute what the graph means.
#include "LowerFixture.h"

#include <limits>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("lowering: operators with one operand") {
  struct Row {
    OpKind op;
    double low, high;
    bool integersToo;
    std::map<std::string, Attribute> attributes;
  };
  const std::vector<Row> rows = {
      {OpKind::Abs, -4, 4, true, {}},
      {OpKind::Acos, -0.9, 0.9, false, {}},
      {OpKind::Acosh, 1.1, 5, false, {}},
      {OpKind::Asin, -0.9, 0.9, false, {}},
      {OpKind::Asinh, -4, 4, false, {}},
      {OpKind::Atan, -4, 4, false, {}},
      {OpKind::Atanh, -0.9, 0.9, false, {}},
      {OpKind::Ceil, -4, 4, false, {}},
      {OpKind::Celu, -4, 4, false, {{"alpha", 1.5}}},
      {OpKind::Cos, -4, 4, false, {}},
      {OpKind::Cosh, -3, 3, false, {}},
      {OpKind::Elu, -4, 4, false, {{"alpha", 0.7}}},
      {OpKind::Erf, -3, 3, false, {}},
      {OpKind::Exp, -3, 3, false, {}},
      {OpKind::Floor, -4, 4, false, {}},
      {OpKind::Gelu, -4, 4, false, {{"approximate", std::string("none")}}},
      {OpKind::Gelu, -4, 4, false, {{"approximate", std::string("tanh")}}},
      {OpKind::HardSigmoid, -5, 5, false, {{"alpha", 0.3}, {"beta", 0.4}}},
      {OpKind::HardSwish, -5, 5, false, {}},
      {OpKind::Identity, -4, 4, true, {}},
      {OpKind::LeakyRelu, -4, 4, false, {{"alpha", 0.1}}},
      {OpKind::Log, 0.1, 4, false, {}},
      {OpKind::Mish, -4, 4, false, {}},
      {OpKind::Neg, -4, 4, true, {}},
      {OpKind::Reciprocal, 0.3, 4, false, {}},
      {OpKind::Relu, -4, 4, true, {}},
      {OpKind::Round, -4, 4, false, {}},
      {OpKind::Selu, -4, 4, false, {{"alpha", 1.6}, {"gamma", 1.05}}},
      {OpKind::Shrink, -4, 4, false, {{"bias", 0.5}, {"lambd", 1.0}}},
      {OpKind::Sigmoid, -6, 6, false, {}},
      {OpKind::Sign, -2, 2, true, {}},
      {OpKind::Sin, -4, 4, false, {}},
      {OpKind::Sinh, -3, 3, false, {}},
      {OpKind::Softplus, -30, 30, false, {}},
      {OpKind::Softsign, -4, 4, false, {}},
      {OpKind::Sqrt, 0, 4, false, {}},
      {OpKind::Swish, -4, 4, false, {{"alpha", 1.3}}},
      {OpKind::Tan, -1.2, 1.2, false, {}},
      {OpKind::Tanh, -4, 4, false, {}},
      {OpKind::ThresholdedRelu, -4, 4, false, {{"alpha", 0.8}}},
  };
  forSeeds(2, [&](Random &r) {
    for (const Row &row : rows)
      for (DType t : {DType::F32, DType::F16, DType::F64, DType::BF16, DType::I32, DType::I8}) {
        if (!isFloat(t) && !row.integersToo)
          continue;
        // A rounding function jumps: 16-bit inputs are exact there, so that both sides see the same number.
        GraphMaker m;
        m.tolerance = 1e-5;
        m.node(row.op, {m.input(r.tensor(t, r.dims(r.integer(0, 4), true), row.low, row.high))},
               row.attributes, {t});
        m.check();
      }
  });
}

TEST_CASE("lowering: tests and conversions") {
  const std::vector<DType> types = {DType::Bool, DType::I8,   DType::I16, DType::I32, DType::I64,
                                    DType::U8,   DType::U16,  DType::U32, DType::U64, DType::F16,
                                    DType::F32,  DType::BF16, DType::F64};
  forSeeds(2, [&](Random &r) {
    for (DType from : types)
      for (DType to : types) {
        GraphMaker m;
        bool sign = isSigned(from) && isSigned(to);
        double high = from == DType::Bool ? 1 : 100;
        m.node(OpKind::Cast, {m.input(r.tensor(from, r.dims(2), sign ? -100 : 0, high))},
               {{"to", to}, {"saturate", int64_t(1)}}, {to});
        m.check();
      }
    GraphMaker m;
    TensorValue x = r.tensor(DType::F32, {6}, -1, 1);
    x.floats = {NAN, INFINITY, -INFINITY, 0, -0.0, 1};
    ValueId id = m.input(x);
    m.node(OpKind::IsNaN, {id}, {}, {DType::Bool});
    for (int64_t negative : {0, 1})
      for (int64_t positive : {0, 1})
        m.node(OpKind::IsInf, {id}, {{"detect_negative", negative}, {"detect_positive", positive}},
               {DType::Bool});
    m.node(OpKind::Sign, {id}, {}, {DType::F32});
    m.node(OpKind::Not, {m.input(r.tensor(DType::Bool, {3}, 0, 1))}, {}, {DType::Bool});
    m.node(OpKind::BitwiseNot, {m.input(r.tensor(DType::I16, {3}, -9, 9))}, {}, {DType::I16});
    m.check();
  });
}

namespace {

/// Operand shapes that broadcast against each other.
std::vector<std::vector<int64_t>> broadcastable(Random &r, size_t count) {
  std::vector<int64_t> full = r.dims(r.integer(0, 5), true);
  std::vector<std::vector<int64_t>> list;
  for (size_t i = 0; i < count; ++i) {
    auto drop = r.integer(0, static_cast<int64_t>(full.size()));
    std::vector<int64_t> dims(full.begin() + (r.chance(50) ? 0 : drop), full.end());
    for (int64_t &d : dims)
      if (r.chance(25))
        d = 1;
    list.push_back(dims);
  }
  return list;
}

} // namespace

TEST_CASE("lowering: broadcast operators") {
  struct Row {
    OpKind op;
    size_t operands;
    std::vector<DType> types;
    bool comparison;
    double low;
    std::map<std::string, Attribute> attributes;
  };
  const std::vector<DType> numbers = {DType::F32, DType::F16, DType::I32, DType::I64, DType::U8};
  const std::map<std::string, Attribute> left = {{"direction", std::string("LEFT")}},
                                         right = {{"direction", std::string("RIGHT")}};
  const std::vector<Row> rows = {
      {OpKind::Add, 2, numbers, false, 1, {}},
      {OpKind::Sub, 2, numbers, false, 1, {}},
      {OpKind::Mul, 2, numbers, false, 1, {}},
      {OpKind::Div, 2, numbers, false, 1, {}},
      {OpKind::Max, 3, numbers, false, 0, {}},
      {OpKind::Min, 1, numbers, false, 0, {}},
      {OpKind::Sum, 3, {DType::F32}, false, 0, {}},
      {OpKind::Mean, 3, {DType::F32}, false, 0, {}},
      {OpKind::Equal, 2, {DType::I32, DType::Bool, DType::F32}, true, 0, {}},
      {OpKind::Less, 2, numbers, true, 0, {}},
      {OpKind::LessOrEqual, 2, numbers, true, 0, {}},
      {OpKind::Greater, 2, numbers, true, 0, {}},
      {OpKind::GreaterOrEqual, 2, numbers, true, 0, {}},
      {OpKind::And, 2, {DType::Bool}, true, 0, {}},
      {OpKind::Or, 2, {DType::Bool}, true, 0, {}},
      {OpKind::Xor, 2, {DType::Bool}, true, 0, {}},
      {OpKind::BitwiseAnd, 2, {DType::I32}, false, 0, {}},
      {OpKind::BitwiseOr, 2, {DType::U8}, false, 0, {}},
      {OpKind::BitwiseXor, 2, {DType::I64}, false, 0, {}},
      {OpKind::BitShift, 2, {DType::U8, DType::U32}, false, 0, left},
      {OpKind::BitShift, 2, {DType::U16, DType::U64}, false, 0, right},
      {OpKind::BitShift, 2, {DType::I8, DType::I32, DType::I64}, false, -3, left},
      {OpKind::BitShift, 2, {DType::I8, DType::I16, DType::I64}, false, -3, right},
      {OpKind::Mod, 2, {DType::I32, DType::I64}, false, 1, {{"fmod", int64_t(0)}}},
      {OpKind::Mod, 2, {DType::F32, DType::F64}, false, -3, {{"fmod", int64_t(0)}}},
      {OpKind::Mod, 2, {DType::I32, DType::F32}, false, 1, {{"fmod", int64_t(1)}}},
      {OpKind::PRelu, 2, {DType::F32}, false, -3, {}},
      {OpKind::Pow, 2, {DType::F32, DType::I32, DType::I64}, false, 0.2, {}},
  };
  forSeeds(6, [&](Random &r) {
    for (const Row &row : rows)
      for (DType t : row.types) {
        GraphMaker m;
        m.tolerance = 1e-4;
        std::vector<ValueId> in;
        auto shapes = broadcastable(r, row.operands);
        if (row.op == OpKind::PRelu)
          shapes[0] = r.dims(2), shapes[1] = {shapes[0][1]};
        for (const auto &dims : shapes) {
          TensorValue v = r.tensor(t, dims, row.low, t == DType::Bool ? 1 : 5);
          in.push_back(r.chance(30) ? m.constant(v) : m.input(v));
        }
        m.node(row.op, in, row.attributes, {row.comparison ? DType::Bool : t});
        m.check();
      }
    GraphMaker m;
    auto shapes = broadcastable(r, 3);
    m.node(OpKind::Where,
           {m.input(r.tensor(DType::Bool, shapes[0], 0, 1)),
            m.input(r.tensor(DType::F32, shapes[1], -2, 2)),
            m.input(r.tensor(DType::F32, shapes[2], -2, 2))},
           {}, {DType::F32});
    ValueId x = m.input(r.tensor(DType::F32, r.dims(3), -3, 3));
    m.node(
        OpKind::Clip,
        {x, m.constant(r.tensor(DType::F32, {}, -1, 0)), m.input(r.tensor(DType::F32, {}, 0, 1))},
        {}, {DType::F32});
    m.node(OpKind::Clip, {x, kNoValue, m.input(r.tensor(DType::F32, {}, 0, 1))}, {}, {DType::F32});
    m.check();
  });
}

TEST_CASE("lowering: a division by a number is a product that finds whole what is whole") {
  struct Row {
    float divisor;
    bool product;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<Row> rows = {
      {std::sqrt(2.0F), true}, // the nearest number to its reciprocal gives 0.99999994 of itself
      {0.1F, true},
      {-0.3F, true},
      {8.0F, true},
      {0x1p-126F, true},
      {-255.0F,
       false}, // a whole quotient is not whole by the nearest reciprocal, nor by its neighbours
      {3.0F, false}, // too many whole quotients to try
      {0.0F, false},
      {infinity, false},
      {1e-40F, false},
      {0x1p127F, false}};
  forSeeds(2, [&](Random &r) {
    for (const Row &row : rows) {
      INFO("divided by " << row.divisor);
      TensorValue x(DType::F32, {4000});
      for (size_t i = 0; i < x.floats.size(); ++i) {
        const auto q = static_cast<double>(r.integer(-70000, 70000));
        const double random = std::ldexp(r.real(-2, 2), static_cast<int>(r.integer(-100, 100)));
        x.floats[i] = i % 2 == 0 ? q * row.divisor : random;
      }
      x.floats[0] = -0.0, x.floats[1] = infinity, x.floats[2] = -infinity;
      x.floats[3] = std::numeric_limits<double>::quiet_NaN();
      x.round();
      TensorValue c(DType::F32, {});
      c.floats[0] = row.divisor;
      GraphMaker m;
      m.node(OpKind::Div, {m.input(x), m.constant(c)}, {}, {DType::F32});
      auto program = lowerGraph(m.graph);
      REQUIRE(program.ok());
      CHECK((print(*program, nullptr).find("div(") == std::string::npos) == row.product);
      auto got = evaluate(*program, m.inputs);
      REQUIRE(got.ok());
      for (size_t i = 0; i < x.floats.size(); ++i) {
        const auto value = static_cast<float>(x.floats[i]),
                   y = static_cast<float>((*got)[0].floats[i]);
        const float rounded = value / row.divisor;
        INFO(value << " gives " << y << ", divided " << rounded);
        CHECK(std::isnan(y) == std::isnan(rounded));
        if (std::isnan(y))
          continue;
        CHECK(std::signbit(y) == std::signbit(rounded));
        const double exact = static_cast<double>(value) / static_cast<double>(row.divisor);
        const bool whole = std::fma(rounded, row.divisor, -value) == 0;
        if (whole || !std::isfinite(rounded) || !std::isfinite(y)) {
          CHECK(y == rounded);
          continue;
        }
        const double unit = std::nextafter(std::fabs(rounded), infinity) - std::fabs(rounded);
        CHECK(std::fabs(static_cast<double>(y) - exact) <= 1.5 * unit);
      }
    }
  });
}

TEST_CASE("lowering: what decides between whole numbers is divided as it is written") {
  const std::vector<int64_t> dims = {4000};
  TensorValue x(DType::F32, dims), c(DType::F32, {}), offset(DType::F32, {});
  for (size_t i = 0; i < x.floats.size(); ++i) // a product by 100 finds other hundredths whole
    x.floats[i] = static_cast<double>(static_cast<float>(i) * 0.01F);
  c.floats[0] = static_cast<double>(0.01F);
  offset.floats[0] = 2;
  struct Row {
    OpKind op; // of quotient + 2
    std::map<std::string, Attribute> attributes;
    DType result;
    bool product;
  };
  const std::vector<Row> rows = {
      {OpKind::Floor, {}, DType::F32, false},
      {OpKind::Ceil, {}, DType::F32, false},
      {OpKind::Round, {}, DType::F32, false},
      {OpKind::Cast, {{"to", DType::I32}, {"saturate", int64_t{1}}}, DType::I32, false},
      {OpKind::Less, {}, DType::Bool, false},
      {OpKind::Erf, {}, DType::F32, true}};
  for (const Row &row : rows) {
    GraphMaker m;
    m.tolerance = row.product ? 1e-5 : 0;
    const ValueId quotient = m.node(OpKind::Div, {m.input(x), m.constant(c)}, {}, {DType::F32})[0];
    const ValueId sum = m.node(OpKind::Add, {quotient, m.constant(offset)}, {}, {DType::F32})[0];
    std::vector<ValueId> operands = {sum};
    if (row.op == OpKind::Less)
      operands.push_back(m.input(x));
    m.node(row.op, operands, row.attributes, {row.result});
    m.check();
    const auto program = lowerGraph(m.graph);
    REQUIRE(program.ok());
    CHECK((print(*program, nullptr).find("div(") == std::string::npos) == row.product);
  }
}

TEST_CASE("lowering: reductions over any axes, empty ones too") {
  const std::vector<OpKind> ops = {
      OpKind::ReduceL1,   OpKind::ReduceL2,        OpKind::ReduceLogSum, OpKind::ReduceMax,
      OpKind::ReduceMean, OpKind::ReduceLogSumExp, OpKind::ReduceMin,    OpKind::ReduceProd,
      OpKind::ReduceSum,  OpKind::ReduceSumSquare};
  forSeeds(20, [&](Random &r) {
    for (OpKind op : ops)
      for (DType t : {DType::F32, DType::I32, DType::F16}) {
        bool logarithm = op == OpKind::ReduceLogSum || op == OpKind::ReduceLogSumExp;
        if (t == DType::I32 && (logarithm || op == OpKind::ReduceMean || op == OpKind::ReduceL2))
          continue; // defined for floats, or truncated differently
        GraphMaker m;
        // An extremum over nothing is only defined for floats here.
        bool mayBeEmpty =
            op == OpKind::ReduceSum || op == OpKind::ReduceProd || op == OpKind::ReduceSumSquare;
        std::vector<int64_t> dims = r.dims(r.integer(1, 5), mayBeEmpty), axes;
        for (int64_t a = 0; a < static_cast<int64_t>(dims.size()); ++a)
          if (r.chance(50))
            axes.push_back(a);
        m.node(op, {m.input(r.tensor(t, dims, logarithm ? 0.5 : -2, 2))},
               {{"axes", axes}, {"keepdims", r.integer(0, 1)}}, {t});
        m.check();
      }
  });
}

TEST_CASE("lowering: extrema with their places") {
  forSeeds(20, [&](Random &r) {
    for (OpKind op : {OpKind::ArgMax, OpKind::ArgMin}) {
      GraphMaker m;
      std::vector<int64_t> dims = r.dims(r.integer(1, 4));
      int64_t axis = r.integer(0, static_cast<int64_t>(dims.size()) - 1);
      // Few values, so that there are ties.
      ValueId x =
          m.input(r.tensor(r.pick<DType>({DType::F32, DType::I32, DType::F16}), dims, -2, 2));
      for (int64_t last : {0, 1})
        m.node(op, {x},
               {{"axis", axis}, {"keepdims", r.integer(0, 1)}, {"select_last_index", last}},
               {DType::I64});
      m.check();
    }
  });
}

TEST_CASE("lowering: one element and its place are a map each") {
  Random r(1);
  GraphMaker m;
  const ValueId x = m.input(r.tensor(DType::F32, {3, 1, 5}, -4, 4));
  for (int64_t last : {0, 1})
    for (OpKind op : {OpKind::ArgMax, OpKind::ArgMin})
      m.node(op, {x}, {{"axis", int64_t{1}}, {"keepdims", last}, {"select_last_index", last}},
             {DType::I64});
  m.node(OpKind::Hardmax, {x}, {{"axis", int64_t{1}}}, {DType::F32});
  const std::vector<int64_t> one = {1};
  m.node(OpKind::MaxPool, {x},
         {{"kernel_shape", one},
          {"strides", one},
          {"pads", std::vector<int64_t>{0, 0}},
          {"dilations", one},
          {"ceil_mode", int64_t{0}},
          {"storage_order", int64_t{0}}},
         {DType::F32, DType::I64}, {{3, 1, 5}, {3, 1, 5}});
  m.check();
  const Result<ExprProgram> program = lowerGraph(m.graph);
  REQUIRE(program.ok());
  CHECK(program->items.size() == 4 * 2 + 3 + 2);
  for (const Item &item : program->items)
    CHECK(std::get<Equation>(item.value).kind == EquationKind::Map);
  const ExprProgram whole = eliminateDeadCode(*program);
  CHECK(whole.items.size() == 4 + 2 + 2); // the extrema that nobody asked for are gone
}

TEST_CASE("lowering: running sums and products") {
  forSeeds(20, [&](Random &r) {
    for (OpKind op : {OpKind::CumSum, OpKind::CumProd})
      for (DType t : {DType::F32, DType::I64}) {
        GraphMaker m;
        std::vector<int64_t> dims = r.dims(r.integer(1, 4));
        TensorValue axis(DType::I64, {});
        axis.ints[0] =
            r.integer(-static_cast<int64_t>(dims.size()), static_cast<int64_t>(dims.size()) - 1);
        m.node(op, {m.input(r.tensor(t, dims, -3, 3)), m.constant(axis)},
               {{"exclusive", r.integer(0, 1)}, {"reverse", r.integer(0, 1)}}, {t});
        m.check();
      }
  });
}

TEST_CASE("lowering: running sums of long axes, by parts of sixteen") {
  forSeeds(2, [&](Random &r) {
    for (const int64_t length : {0, 1, 64, 65, 79, 80, 1024, 1025, 5000, 20000})
      for (int64_t options = 0; options < 4; ++options) {
        GraphMaker m;
        TensorValue axis(DType::I64, {});
        axis.ints[0] = r.integer(0, 1);
        std::vector<int64_t> dims = {2, 2};
        dims[static_cast<size_t>(axis.ints[0])] = length;
        m.node(OpKind::CumSum, {m.input(r.tensor(DType::I64, dims, -3, 3)), m.constant(axis)},
               {{"exclusive", options & 1}, {"reverse", options >> 1}}, {DType::I64});
        m.check();
      }
    // Nothing leaks from an element to those in front of it.
    for (const OpKind op : {OpKind::CumSum, OpKind::CumProd})
      for (const DType type : {DType::F32, DType::F16})
        for (const int64_t reverse : {0, 1}) {
          GraphMaker m;
          TensorValue axis(DType::I64, {}), x = r.tensor(type, {1, 300}, 0.9, 1.1);
          axis.ints[0] = 1;
          x.floats[static_cast<size_t>(r.integer(100, 200))] =
              std::numeric_limits<double>::quiet_NaN();
          m.node(op, {m.input(x), m.constant(axis)},
                 {{"exclusive", int64_t(0)}, {"reverse", reverse}}, {type});
          m.check();
        }
  });
}

TEST_CASE("lowering: the softmax family") {
  forSeeds(20, [&](Random &r) {
    for (OpKind op : {OpKind::Softmax, OpKind::LogSoftmax, OpKind::Hardmax})
      for (DType t : {DType::F32, DType::F16, DType::F64}) {
        GraphMaker m;
        std::vector<int64_t> dims = r.dims(r.integer(1, 4));
        m.node(op, {m.input(r.tensor(t, dims, -20, 20))},
               {{"axis", r.integer(0, static_cast<int64_t>(dims.size()) - 1)}}, {t});
        m.check();
      }
  });
}

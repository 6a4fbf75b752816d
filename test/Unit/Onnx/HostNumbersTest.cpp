// Arithmetic on sizes: what is an expression over the symbols, and what a program of the host.
#include "Onnx/HostNumbers.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;

namespace {

using Op = DimProgram::Op;
using Id = HostNumbers::Id;

struct Sizes {
  std::vector<Symbol> symbols;
  SizeSolver solver;
  HostNumbers numbers{symbols, solver};

  explicit Sizes(int64_t max, int64_t min = 1) {
    symbols = {{"n", min, min, max, 1}, {"m", 1, 1, max, 1}};
    for (const Symbol &s : symbols)
      solver.symbol(s, true);
    solver.beginRound();
  }
  Id n() { return numbers.integer(DType::I64, DimExpr::symbol(0)); }
  Id m() { return numbers.integer(DType::I64, DimExpr::symbol(1)); }
  Id integer(int64_t v) { return numbers.integer(DType::I64, v); }
  Id real(double v) { return numbers.real(DType::F32, v); }
  Id floats(Id x, DType type = DType::F32) { return *numbers.cast(type, x); }
  Id make(Op op, Id a, Id b = -1, Id c = -1) {
    const bool compares = op == Op::Equal || op == Op::Less || op == Op::LessOrEqual;
    return *numbers.apply(op, compares ? DType::Bool : numbers.type(op == Op::Select ? b : a),
                          {a, b, c});
  }
  std::string text(Id x) {
    const auto size = numbers.size(x, "node");
    return size ? size->str(symbols) : "none";
  }
  /// As an integer, and what defines it where it is a symbol with a program.
  std::string ofFloat(Id x) {
    std::string made = text(*numbers.cast(DType::I64, x));
    return symbols.back().definition && made == symbols.back().name
               ? symbols.back().definition->str(symbols)
               : made;
  }
};

} // namespace

TEST_CASE("the length of a range of floats is an expression within the limits of floats") {
  const auto length = [](Sizes &s) { // from n down to -n
    const Id start = s.floats(s.n()), end = s.floats(s.make(Op::Mul, s.n(), s.integer(-1)));
    return *s.numbers.cast(
        DType::I64, s.make(Op::Ceil, s.make(Op::Div, s.make(Op::Sub, end, start), s.real(-1))));
  };
  Sizes some(4096);
  CHECK(some.text(length(some)) == "n*2");
  Sizes all(INT64_MAX);
  const Id open = length(all);
  std::vector<std::string> limits;
  for (const SizeRule &rule : all.numbers.limits(open))
    limits.push_back(rule.left.str(all.symbols) + " >= " + rule.right.str(all.symbols));
  CHECK(limits == std::vector<std::string>{"n*-1 >= -16777215", "16777215 >= n",
                                           "n*-2 >= -16777215", "16777215 >= n*2"});
  CHECK(all.text(open) == "computed.0");

  // None that would forbid usual sizes: of a product of two, of one in sixteen bits, in steps of a seventh.
  const Id n = all.floats(all.n()), m = all.floats(all.m());
  const auto isLimited = [&](Id x) {
    return !all.numbers.limits(*all.numbers.cast(DType::I64, x)).empty();
  };
  CHECK(isLimited(n));
  CHECK(!isLimited(all.make(Op::Mul, n, m)));
  CHECK(!isLimited(all.floats(all.n(), DType::F16)));
  CHECK(!isLimited(all.make(Op::Mul, n, all.real(1.0 / 7))));
  // Nor what falls with a size, and is too large where that is small.
  CHECK(!isLimited(all.make(Op::Sub, all.real(16777215), all.make(Op::Mul, n, all.real(4)))));
  Sizes short16(4096);
  CHECK(
      short16.numbers
          .limits(*short16.numbers.cast(
              DType::I64, short16.floats(short16.make(Op::Sub, short16.integer(4096), short16.n()),
                                         DType::F16)))
          .empty());
  // Nor for what is no expression within them either.
  const Id half = *all.numbers.cast(DType::I64, all.make(Op::Mul, n, all.real(0.5)));
  CHECK(!all.numbers.limits(half).empty());
  CHECK(all.numbers.limits(all.make(Op::Pow, half, all.m())).empty());
}

TEST_CASE("floats that are exact for all sizes leave expressions") {
  Sizes s(4096);
  const Id n = s.floats(s.n());
  CHECK(s.ofFloat(s.make(Op::Ceil, s.make(Op::Div, n, s.real(2)))) == "floordiv(n + 1, 2)");
  CHECK(s.ofFloat(s.make(Op::Floor, s.make(Op::Mul, n, s.real(0.75)))) == "floordiv(n*3, 4)");
  CHECK(s.ofFloat(s.make(Op::Div, n, s.real(3))) == "floordiv(n, 3)");
  CHECK(s.ofFloat(s.make(Op::Add, s.make(Op::Mul, n, s.real(0.5)), s.real(1.5))) ==
        "floordiv(n + 1, 2) + 1");
  CHECK(s.ofFloat(s.make(Op::Mul, s.make(Op::Floor, s.make(Op::Div, n, s.real(32))), s.real(32))) ==
        "floordiv(n, 32)*32");
  CHECK(s.symbols.size() == 2);
}

TEST_CASE("floats that may be rounded are computed as the model does it") {
  Sizes s(INT64_MAX);
  CHECK(s.ofFloat(s.make(Op::Ceil, s.make(Op::Div, s.floats(s.n()), s.real(2)))) ==
        "i64(ceil(f32(n)/2.0))");
  Sizes bounded(4096);
  // 0.7 is no binary fraction of few bits.
  CHECK(bounded.ofFloat(bounded.make(Op::Mul, bounded.floats(bounded.n()), bounded.real(0.7))) ==
        "i64(f32(n)*0.7)");
  CHECK(bounded.symbols[2].min == 0);
  CHECK(bounded.symbols[2].max == 2867);
  // n*m may have more bits than f16 holds.
  CHECK(bounded.ofFloat(bounded.floats(bounded.make(Op::Mul, bounded.n(), bounded.m()),
                                       DType::F16)) == "i64(f16(n*m))");
  // A quotient of quotients is rounded twice.
  CHECK(bounded.ofFloat(bounded.make(
            Op::Div, bounded.make(Op::Div, bounded.floats(bounded.n()), bounded.real(3)),
            bounded.real(5))) == "i64(f32(n)/3.0/5.0)");
}

TEST_CASE("integers divide towards zero, and modulo has the divisor's sign") {
  Sizes s(100);
  const Id below = s.make(Op::Sub, s.n(), s.m());
  CHECK(s.text(s.make(Op::Div, s.n(), s.integer(2))) == "floordiv(n, 2)");
  for (int64_t divisor : {2, 7})
    for (Op op : {Op::Div, Op::Mod, Op::Rem}) {
      const auto size = s.numbers.size(s.make(op, below, s.integer(divisor)), "node");
      REQUIRE(size);
      for (int64_t n : {1, 2, 9, 30})
        for (int64_t m : {1, 4, 8, 100}) {
          const int64_t a = n - m, rest = a % divisor;
          const int64_t wanted = op == Op::Div   ? a / divisor
                                 : op == Op::Rem ? rest
                                                 : (rest + divisor) % divisor;
          CHECK(size->evaluate({n, m}) == wanted);
        }
    }
  CHECK(s.symbols.size() == 2);
}

TEST_CASE("a number without a value leaves none where it is chosen") {
  Sizes s(100);
  const Id none = s.numbers.none(DType::I64);
  const Id chosen = s.make(Op::Select, s.make(Op::Less, s.n(), s.m()), none, s.n());
  CHECK(s.text(chosen) == "computed.0");
  CHECK(s.symbols[2].min == 1);
  CHECK(s.symbols[2].max == 100);
  CHECK(s.symbols[2].definition->evaluate({4, 3}) == 4);
  CHECK(s.symbols[2].definition->evaluate({3, 4}) == std::nullopt);
}

TEST_CASE("choices are made where the condition is known, and are extrema or programs else") {
  Sizes s(100, 5);
  const Id four = s.integer(4);
  CHECK(s.text(s.make(Op::Select, s.make(Op::Less, s.n(), four), four, s.n())) == "n");
  CHECK(s.text(s.make(Op::Select, s.make(Op::Less, s.n(), s.m()), s.n(), s.m())) == "min(n, m)");
  CHECK(s.text(s.make(Op::Select, s.make(Op::LessOrEqual, s.n(), s.m()), s.m(), s.n())) ==
        "max(n, m)");
  CHECK(s.symbols.size() == 2);
  const Id chosen = s.make(Op::Select, s.make(Op::Equal, s.n(), s.m()), s.integer(7), s.integer(9));
  CHECK(s.text(chosen) == "computed.0");
  CHECK(s.symbols[2].definition->str(s.symbols) == "select(n == m, 7, 9)");
  CHECK(s.symbols[2].min == 7);
  CHECK(s.symbols[2].max == 9);
  // The same again is the same size, and what is made of it an expression.
  CHECK(s.text(s.make(Op::Add, chosen, chosen)) == "computed.0*2");
  CHECK(s.symbols.size() == 3);
}

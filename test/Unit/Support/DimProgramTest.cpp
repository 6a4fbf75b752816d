#include "Support/DimProgram.h"
#include "Support/TypeText.h"

#include <catch2/catch_all.hpp>

#include <bit>
#include <cmath>
#include <random>

using namespace fusec;

namespace {

using Op = DimProgram::Op;
using Instr = DimProgram::Instr;

constexpr DType kInt = DType::I64, kFloat = DType::F32, kBool = DType::Bool;

Instr symbol(int64_t id) { return {Op::Symbol, kInt, {-1, -1, -1}, id}; }
Instr integer(int64_t v) { return {Op::Integer, kInt, {-1, -1, -1}, v}; }
Instr real(double v, DType type = kFloat) {
  return {Op::Float, type, {-1, -1, -1}, std::bit_cast<int64_t>(v)};
}
Instr made(Op op, DType type, int a, int b = -1, int c = -1) { return {op, type, {a, b, c}, 0}; }

std::optional<int64_t> run(std::vector<Instr> code, const std::vector<int64_t> &symbols = {}) {
  const DimProgram program{std::move(code), "node"};
  REQUIRE(program.valid(symbols.size()));
  return program.evaluate(symbols);
}

} // namespace

TEST_CASE("integers of a program of sizes are exact or have no value") {
  auto binary = [](Op op, int64_t a, int64_t b) {
    return run({integer(a), integer(b), made(op, kInt, 0, 1)});
  };
  CHECK(binary(Op::Div, -7, 2) == -3);
  CHECK(binary(Op::FloorDiv, -7, 2) == -4);
  CHECK(binary(Op::CeilDiv, 7, 2) == 4);
  CHECK(binary(Op::Mod, -7, 3) == 2);
  CHECK(binary(Op::Mod, 7, -3) == -2);
  CHECK(binary(Op::Rem, -7, 3) == -1);
  CHECK(binary(Op::Div, 1, 0) == std::nullopt);
  CHECK(binary(Op::Mod, 1, 0) == std::nullopt);
  CHECK(binary(Op::Div, INT64_MIN, -1) == std::nullopt);
  CHECK(binary(Op::Add, INT64_MAX, 1) == std::nullopt);
  CHECK(binary(Op::Mul, int64_t(1) << 40, int64_t(1) << 40) == std::nullopt);
  CHECK(binary(Op::Pow, -3, 3) == -27);
  CHECK(binary(Op::Pow, 0, 0) == 1);
  CHECK(binary(Op::Pow, -1, INT64_MAX) == -1);
  CHECK(binary(Op::Pow, 2, 62) == int64_t(1) << 62);
  CHECK(binary(Op::Pow, -2, 63) == INT64_MIN);
  CHECK(binary(Op::Pow, 2, 63) == std::nullopt);
  CHECK(binary(Op::Pow, 3, INT64_MAX) == std::nullopt);
  CHECK(binary(Op::Pow, 5, -2) == 0);
  CHECK(binary(Op::Pow, -1, -3) == -1);
  CHECK(binary(Op::Pow, 0, -1) == std::nullopt);
  CHECK(run({integer(int64_t(1) << 31), made(Op::Cast, DType::I32, 0), made(Op::Cast, kInt, 1)}) ==
        std::nullopt);
}

TEST_CASE("floats of a program of sizes are rounded to their type once") {
  // 2^24 + 1 is no f32; in f64 it is kept.
  const int64_t odd = (1 << 24) + 1;
  CHECK(run({symbol(0), made(Op::Cast, kFloat, 0), made(Op::Cast, kInt, 1)}, {odd}) == odd - 1);
  CHECK(run({symbol(0), made(Op::Cast, DType::F64, 0), made(Op::Cast, kInt, 1)}, {odd}) == odd);
  CHECK(run({symbol(0), made(Op::Cast, DType::F16, 0), made(Op::Cast, kInt, 1)}, {2049}) == 2048);
  // The largest i64 is 2^63 as a float, which is none.
  CHECK(run({integer(INT64_MAX), made(Op::Cast, kFloat, 0), made(Op::Cast, kInt, 1)}) ==
        std::nullopt);
  CHECK(run({real(std::nan("")), made(Op::Cast, kInt, 0)}) == std::nullopt);
  CHECK(run({real(-2.5), made(Op::Round, kFloat, 0), made(Op::Cast, kInt, 1)}) == -2);
  CHECK(run({real(3.5), made(Op::Round, kFloat, 0), made(Op::Cast, kInt, 1)}) == 4);
  CHECK(run({real(-2.5), made(Op::Cast, kInt, 0)}) == -2);
}

TEST_CASE("a choice does not need the value that it does not take") {
  const std::vector<Instr> code{symbol(0),
                                integer(0),
                                integer(100),
                                made(Op::Equal, kBool, 0, 1),
                                made(Op::Div, kInt, 2, 0),
                                made(Op::Select, kInt, 3, 2, 4)};
  CHECK(run(code, {0}) == 100);
  CHECK(run(code, {7}) == 14);
}

TEST_CASE("a program of sizes that is not well-formed is found") {
  auto valid = [](std::vector<Instr> code) { return DimProgram{std::move(code), ""}.valid(1); };
  CHECK(valid({symbol(0)}));
  CHECK(!valid({}));
  CHECK(!valid({symbol(1)}));
  CHECK(!valid({symbol(-1)}));
  CHECK(!valid({real(1)})); // no i64
  CHECK(!valid({integer(1), made(Op::Add, kInt, 0, 1)}));
  CHECK(!valid({integer(1), made(Op::Add, kInt, 0, -1)}));
  CHECK(!valid({integer(1), made(Op::Add, kInt, 0, -7)}));
  CHECK(!valid({integer(1), real(1), made(Op::Add, kInt, 0, 1)}));
  CHECK(!valid({integer(1), made(Op::Floor, kInt, 0)}));
  CHECK(!valid({integer(1), made(Op::Cast, kInt, 0, 0)}));
  CHECK(!valid({integer(1), integer(2), made(Op::Select, kInt, 0, 1, 1)}));
  CHECK(!valid({{static_cast<Op>(77), kInt, {-1, -1, -1}, 0}}));
  CHECK(!valid({{Op::Integer, static_cast<DType>(77), {-1, -1, -1}, 0}}));
  CHECK(!valid(std::vector<Instr>(DimProgram::kMaxLength + 1, integer(0))));
}

TEST_CASE("symbols with definitions read back as they were printed") {
  const char *text = "symbol n = 1..64 opt 8 divisor 1\n"
                     "symbol computed.0 = -3..40 opt 4 divisor 1 by (i64 symbol n, f32 cast $0, "
                     "f32 float 0.7, f32 mul "
                     "$1 $2, i64 cast $3) for \"a node\"\n"
                     "symbol computed.1 = 0..40 opt 4 divisor 2 by (i64 symbol computed.0, i64 "
                     "integer -3, bool less $0 "
                     "$1, i64 select $2 $0 $1) for b\n";
  TextReader in(text, "text");
  const auto symbols = parseSymbols(in);
  REQUIRE(symbols.ok());
  CHECK(symbolsText(*symbols) == text);
  CHECK((*symbols)[1].definition->str(*symbols) == "i64(f32(n)*0.7)");
  CHECK((*symbols)[2].definition->str(*symbols) == "select(computed.0 < (-3), computed.0, -3)");
  CHECK(numGiven(*symbols) == 1);
  std::vector<int64_t> values{10};
  CHECK(computeDefined(*symbols, values) == std::nullopt);
  CHECK(values == std::vector<int64_t>{10, 7, -3});
}

TEST_CASE("what a program computes lies within the bounds that are said of it") {
  const std::vector<Symbol> symbols{{"a", 1, 1, 9, 1}, {"b", 3, 3, 700, 1}};
  std::mt19937 random(7);
  auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 3000; ++round) {
    std::vector<Instr> code{symbol(0),
                            symbol(1),
                            integer(static_cast<int64_t>(below(9)) - 4),
                            made(Op::Cast, kFloat, 0),
                            made(Op::Cast, kFloat, 1),
                            real(static_cast<double>(below(90)) / 16 - 2)};
    for (int step = 0; step < 8; ++step) {
      const auto op = static_cast<Op>(below(static_cast<size_t>(Op::Select) - 2) + 3);
      std::array<int, 3> args{};
      for (int &a : args)
        a = static_cast<int>(below(code.size()));
      const int operands = numOperands(op);
      auto types = {kInt, kFloat, kBool};
      for (DType type : types) {
        std::vector<Instr> longer = code;
        longer.push_back(
            made(op, type, args[0], operands > 1 ? args[1] : -1, operands > 2 ? args[2] : -1));
        longer.push_back(made(Op::Cast, kInt, static_cast<int>(code.size())));
        if (DimProgram{longer, ""}.valid(symbols.size())) {
          longer.pop_back();
          code = longer;
          break;
        }
      }
    }
    std::vector<DimNumberRange> ranges;
    for (const Instr &i : code) {
      std::array<const DimNumberRange *, 3> args{};
      for (size_t a = 0; a < 3; ++a)
        args[a] = i.args[a] < 0 ? nullptr : &ranges[static_cast<size_t>(i.args[a])];
      ranges.push_back(rangeOf(
          i, i.args[0] < 0 ? i.type : code[static_cast<size_t>(i.args[0])].type, args, symbols));
    }
    for (int64_t a : {1, 2, 9})
      for (int64_t b : {3, 64, 700}) {
        std::vector<DimNumber> values;
        for (size_t k = 0; k < code.size(); ++k) {
          const Instr &i = code[k];
          std::array<const DimNumber *, 3> args{};
          for (size_t n = 0; n < 3; ++n)
            args[n] = i.args[n] < 0 ? nullptr : &values[static_cast<size_t>(i.args[n])];
          values.push_back(apply(
              i, i.args[0] < 0 ? i.type : code[static_cast<size_t>(i.args[0])].type, args, {a, b}));
          const DimNumber &v = values.back();
          const DimNumberRange &r = ranges[k];
          const bool inside =
              !v.known ||
              (isFloat(i.type)
                   ? (std::isnan(v.real) ? r.mayBeNan : v.real >= r.low && v.real <= r.high)
                   : v.integer >= r.min && v.integer <= r.max);
          INFO("round " << round << ", instruction " << k << ", a " << a << ", b " << b);
          CHECK(inside);
        }
      }
  }
}

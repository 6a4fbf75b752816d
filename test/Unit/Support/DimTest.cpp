#include "Support/DimLimits.h"

#include <catch2/catch_all.hpp>

#include <random>

using namespace fusec;

namespace {

const std::vector<Symbol> symbols = {
    {"n", 0, 8, 64, 1}, {"seq", 8, 64, 512, 8}, {"weird name", 1, 1, 4, 1}, {"min", 3, 3, 3, 1}};
DimExpr n() { return DimExpr::symbol(0); }
DimExpr seq() { return DimExpr::symbol(1); }

/// Evaluates while building, without any normal form: the other side of the property tests.
struct Checked {
  DimExpr expr;
  std::optional<__int128> value;
};

class Generator {
public:
  explicit Generator(uint32_t seed) : rng(seed) {
    for (const Symbol &s : symbols)
      values.push_back(s.min +
                       static_cast<int64_t>(rng() % static_cast<uint64_t>(s.max - s.min + 1)) /
                           s.divisor * s.divisor);
    if (values[1] < 8)
      values[1] = 8;
  }

  Checked make(int depth) {
    if (depth == 0 || rng() % 6 == 0) {
      if (rng() % 2)
        return symbol(static_cast<SymbolId>(rng() % symbols.size()));
      int64_t c = constants[rng() % std::size(constants)];
      return {DimExpr(c), c};
    }
    Checked a = make(depth - 1), b = make(depth - 1);
    switch (rng() % 8) {
    case 0: return {a.expr + b.expr, both(a, b, [](auto x, auto y) { return x + y; })};
    case 1: return {a.expr - b.expr, both(a, b, [](auto x, auto y) { return x - y; })};
    case 2:
    case 3: return {a.expr * b.expr, both(a, b, [](auto x, auto y) { return x * y; })};
    case 4: return {floorDiv(a.expr, b.expr), divided(a, b, floorQuotient)};
    case 5:
      return {ceilDiv(a.expr, b.expr),
              divided(a, b, [](auto x, auto y) { return -floorQuotient(-x, y); })};
    case 6:
      return {mod(a.expr, b.expr),
              divided(a, b, [](auto x, auto y) { return x - floorQuotient(x, y) * y; })};
    default:
      if (rng() % 2)
        return {min(a.expr, b.expr), both(a, b, [](auto x, auto y) { return x < y ? x : y; })};
      return {max(a.expr, b.expr), both(a, b, [](auto x, auto y) { return x > y ? x : y; })};
    }
  }
  std::vector<int64_t> values;

private:
  static __int128 floorQuotient(__int128 a, __int128 b) {
    __int128 q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
  }
  Checked symbol(SymbolId id) { return {DimExpr::symbol(id), values[static_cast<size_t>(id)]}; }
  /// Results beyond int64 count as undefined, so that products of two stay inside 128 bits.
  template <typename F> std::optional<__int128> both(const Checked &a, const Checked &b, F f) {
    if (!a.value || !b.value)
      return std::nullopt;
    __int128 v = f(*a.value, *b.value);
    return v >= INT64_MIN && v <= INT64_MAX ? std::optional(v) : std::nullopt;
  }
  template <typename F> std::optional<__int128> divided(const Checked &a, const Checked &b, F f) {
    return b.value && *b.value == 0 ? std::nullopt : both(a, b, f);
  }

  static constexpr int64_t constants[] = {0,  1,   2,  3,  7,         8,        12,
                                          64, 768, -1, -5, INT64_MAX, INT64_MIN};
  std::mt19937 rng;
};

} // namespace

TEST_CASE("equal expressions have equal normal forms") {
  CHECK(n() * 2 + n() == n() * 3);
  CHECK((n() + 1) * (n() - 1) == n() * n() - 1);
  CHECK(n() - n() == DimExpr(0));
  CHECK(floorDiv(n() * 768 + 65, 64) == n() * 12 + 1);
  CHECK(floorDiv(n() * seq() * 768, n() * seq()) == DimExpr(768));
  CHECK(floorDiv((n() + 1) * seq(), n() + 1) == seq());
  CHECK(floorDiv(floorDiv(n(), 4), 8) == floorDiv(n(), 32));
  CHECK(floorDiv(floorDiv(n() + 1, 2) + 1, 2) == floorDiv(n() + 3, 4));
  CHECK(floorDiv(floorDiv(n(), 2) - seq() * 0 - 1, 3) == floorDiv(n() - 2, 6));
  CHECK(floorDiv(n() * 9, 8) == n() + floorDiv(n(), 8));
  CHECK(floorDiv(n() * 6 + 5, 4) == n() + floorDiv(n() + 2, 2));
  CHECK(ceilDiv(n(), 8) == floorDiv(n() + 7, 8));
  CHECK(mod(n() * 16 + seq() * 9 + 17, 8) == mod(seq() + 1, 8));
  CHECK(mod(mod(n(), 16), 8) == mod(n(), 8));
  CHECK(min(n() + 1, min(seq(), n())) == min(seq(), n()));
  CHECK(max(max(n(), 4), 2) == max(4, n()));
  CHECK(n() != seq());
}

TEST_CASE("constants that overflow stay symbolic and have no value") {
  DimExpr e = DimExpr(INT64_MAX) + DimExpr(1);
  CHECK_FALSE(e.isConst());
  CHECK_FALSE(e.evaluate({}).has_value());
  CHECK((e - DimExpr(1)).evaluate({}) == INT64_MAX);
  CHECK_FALSE(floorDiv(DimExpr(INT64_MIN), -1).evaluate({}).has_value());
  CHECK_FALSE(floorDiv(n(), 0).evaluate({1, 8, 1, 3}).has_value());
  CHECK_FALSE(mod(1, n()).evaluate({0, 8, 1, 3}).has_value());
  CHECK_FALSE(DimExpr::symbol(9).evaluate({1}).has_value());
}

TEST_CASE("the normal form keeps the value of random expressions") {
  int defined = 0;
  for (uint32_t seed = 1; seed <= 20000; ++seed) {
    Generator g(seed);
    Checked c = g.make(1 + static_cast<int>(seed % 5));
    INFO("seed " << seed << ": " << c.expr.str(symbols));
    if (c.value) {
      ++defined;
      REQUIRE(c.expr.evaluate(g.values) == static_cast<int64_t>(*c.value));
      DimExpr::Range r = c.expr.range(symbols);
      REQUIRE(r.min <= *c.value);
      REQUIRE(*c.value <= r.max);
      for (int64_t m : {2, 3, 8, 12})
        if (c.expr.divisibleBy(m, symbols))
          REQUIRE(*c.value % m == 0);
    }
    auto again = DimExpr::parse(c.expr.str(symbols), symbols);
    REQUIRE(again.ok());
    REQUIRE(*again == c.expr);
    REQUIRE(again->hash() == c.expr.hash());
    REQUIRE(again->str(symbols) == c.expr.str(symbols));
  }
  CHECK(defined > 5000);
}

TEST_CASE("substitution is evaluation in two steps") {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    Generator g(seed);
    Checked c = g.make(4);
    if (!c.value)
      continue;
    DimExpr closed = c.expr.substitute(
        [&](SymbolId id) { return std::optional<DimExpr>(g.values[static_cast<size_t>(id)]); });
    INFO("seed " << seed << ": " << c.expr.str(symbols));
    REQUIRE(closed.evaluate({}) == static_cast<int64_t>(*c.value));
  }
}

TEST_CASE("ranges and divisors") {
  CHECK((n() * seq() + 1).range(symbols).max == 64 * 512 + 1);
  CHECK(ceilDiv(seq(), 8).range(symbols).min == 1);
  CHECK(DimExpr(mod(seq(), 5)).range(symbols).max == 4);
  CHECK((n() * INT64_MAX).range(symbols).max == INT64_MAX);
  CHECK((seq() * 3).divisibleBy(24, symbols));
  CHECK_FALSE((seq() * 3).divisibleBy(16, symbols));
  CHECK((seq() * n() + 16).divisibleBy(8, symbols));
  CHECK(DimExpr(0).divisibleBy(7, symbols));
  CHECK(DimExpr::symbol(3).divisibleBy(3, symbols));
  std::vector<SymbolId> used;
  (seq() * seq() + n() * seq()).collectSymbols(used);
  CHECK(used == std::vector<SymbolId>{0, 1});
}

TEST_CASE("what is added to an extremum goes into the one around it") {
  CHECK(max(max(n() - 1, 0) - 1, 0) == max(n() - 2, 0));
  CHECK(min(min(n(), seq()) + 2, seq()) == min(n() + 2, seq()));
  CHECK(max(max(n(), seq()) * 2, 0) != max(n() * 2, 0));
  const DimExpr two = max(n(), 3) + max(seq(), 3);
  CHECK(max(two, 5).evaluate({1, 9}) == 12);
}

TEST_CASE("expressions beyond the limit have no value") {
  DimExpr deep = n(), shared = n();
  for (int i = 0; i < 100000; ++i) {
    deep = floorDiv(deep, 2) + n();
    shared = mod(shared, 3) + floorDiv(shared, 2);
  }
  for (const DimExpr &e : {deep, shared, deep + shared, max(deep, 1)}) {
    CHECK(isTooLarge(e));
    CHECK_FALSE(e.evaluate({5, 5}));
  }
  CHECK((deep * 0).evaluate({5, 5}) == 0);
  DimExpr allowed = n();
  for (int i = 0; i < kLargestSizeOfModel.depth; ++i)
    allowed = floorDiv(allowed, 2) + n();
  CHECK_FALSE(isTooLarge(allowed, kLargestSizeOfModel));
  CHECK(isTooLarge(floorDiv(allowed, 2), kLargestSizeOfModel));
  CHECK(*DimExpr::parse(allowed.str(symbols), symbols) == allowed);
}

TEST_CASE("text of dimensions") {
  CHECK((n() * seq() * 2 - n() + 3).str(symbols) == "n*seq*2 - n + 3");
  CHECK(floorDiv(n() + 1, 2).str(symbols) == "floordiv(n + 1, 2)");
  CHECK(DimExpr::symbol(2).str(symbols) == "`weird name`");
  CHECK(DimExpr::symbol(3).str(symbols) == "`min`");
  CHECK((n() * -2).str(symbols) == "n*-2");
  CHECK(str(Shape{1, n(), n() * 2, 768}, symbols) == "1x(n)x(n*2)x768");
  CHECK(str(Shape{}, symbols) == "[]");
  CHECK(numElements(Shape{2, n(), 3}) == n() * 6);
  CHECK(numElements(Shape{}) == DimExpr(1));
}

TEST_CASE("text that is no dimension is refused with its column") {
  auto message = [](std::string_view text) {
    auto r = DimExpr::parse(text, symbols);
    REQUIRE_FALSE(r.ok());
    return format(r.errors()[0]);
  };
  CHECK(message("n + m") == "error[E3002] dimension 'n + m': unknown symbol 'm' at column 6");
  CHECK(message("") == "error[E3002] dimension '': expected a dimension at column 1");
  CHECK(message("n n") == "error[E3002] dimension 'n n': unexpected text at column 3");
  CHECK(message("min(n)") == "error[E3002] dimension 'min(n)': expected ',' at column 6");
  CHECK(message("9223372036854775808") ==
        "error[E3002] dimension '9223372036854775808': integer does not fit 64 bits at column 1");
  CHECK_FALSE(DimExpr::parse(std::string(100000, '('), symbols).ok());
}

TEST_CASE("sums of many symbols cancel, and products of such sums stay as written") {
  auto sumOf = [](int first, int count) {
    DimExpr sum = 0;
    for (int i = 0; i < count; ++i)
      sum = sum + DimExpr::symbol(first + i);
    return sum;
  };
  const DimExpr many = sumOf(0, 1000);
  CHECK(sizeOf(many).nodes == 1001); // and the sum itself
  CHECK((many - sumOf(0, 999)) == DimExpr::symbol(999));
  CHECK(many * 2 - many == many);
  // Multiplied out they would have 60^3 terms; of two, the third would stand beside all of them again.
  const DimExpr product = sumOf(0, 60) * sumOf(60, 60) * sumOf(120, 60);
  CHECK(sizeOf(product).nodes <= 200);
  CHECK(product == sumOf(0, 60) * sumOf(60, 60) * sumOf(120, 60));
  CHECK(product.evaluate(std::vector<int64_t>(180, 2)) == 120 * 120 * 120);
  CHECK((sumOf(0, 3) * sumOf(3, 3)).operands().size() == 9);
}

TEST_CASE("a size of the data is at its bound, or at its least where a size falls with it") {
  std::vector<Symbol> given = {{"n", 1, 10, 100}};
  given.push_back(dataDependentSymbol("some", DimExpr::symbol(0), given));
  given.push_back(dataDependentSymbol("which", 1, given));
  given.push_back(dataDependentSymbol("few", DimExpr::symbol(1), given));
  auto most = [&](const std::string &text) {
    const auto parsed = DimExpr::parse(text, given);
    REQUIRE(parsed.ok());
    return atBounds(*parsed, given);
  };
  CHECK(most("n*2").str(given) == "n*2");
  CHECK(most("some*n + 1").str(given) == "n*n + 1");
  CHECK(most("few").str(given) == "n");
  CHECK(most("n - some").str(given) == "n");
  CHECK(most("n*2 - n*which").str(given) == "n*2");
  for (int64_t n : {1, 6, 100}) {
    CHECK(most("8 + n*which - 8*which").evaluate({n, 0, 0, 0}) == std::max<int64_t>(n, 8));
    CHECK(most("n - few").evaluate({n, 0, 0, 0}) == n);
  }
}

TEST_CASE("quotients of one size cancel in bounds") {
  const std::vector<Symbol> sizes = {{"s", 1, 1, INT64_MAX, 1}};
  const DimExpr s = DimExpr::symbol(0);
  auto range = [&](const DimExpr &e) {
    const auto r = e.range(sizes);
    return std::pair(r.min, r.max);
  };
  CHECK(range(floorDiv(s, 2) - floorDiv(s, 4) * DimExpr(2)) == std::pair<int64_t, int64_t>(0, 1));
  CHECK(range(s - floorDiv(s, 3) * DimExpr(3)) == std::pair<int64_t, int64_t>(0, 2));
  CHECK(range(floorDiv(s, 8) * DimExpr(-8) + s + DimExpr(5)) == std::pair<int64_t, int64_t>(5, 12));
  CHECK(range(floorDiv(floorDiv(s + DimExpr(1), 2) + DimExpr(1), 2) * DimExpr(4) - s).first == 0);
  // What is not one size stays as wide as it was.
  CHECK(range(floorDiv(s, 2) - floorDiv(s * s, 4) * DimExpr(2)).first == INT64_MIN);
}

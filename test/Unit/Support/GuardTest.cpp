#include "Support/Guard.h"

#include <catch2/catch_all.hpp>

using namespace fusec;

TEST_CASE("guards: text, words and what they let through") {
  const std::vector<Symbol> symbols = {{"batch", 1, 1, 64, 1}, {"seq len", 1, 1, 512, 1}};
  const DimExpr batch = DimExpr::symbol(0), seq = DimExpr::symbol(1);
  struct Case {
    Guard guard;
    std::string words;
    std::vector<int64_t> holds, fails;
  };
  const Case cases[] = {
      {{batch - DimExpr(16)}, "batch >= 16", {16, 1}, {15, 1}},
      {{DimExpr(3) - batch}, "batch <= 3", {3, 1}, {4, 1}},
      {{batch * seq - DimExpr(45)}, "batch*`seq len` >= 45", {5, 9}, {4, 11}},
      {{DimExpr(-1) - (batch * seq - DimExpr(45))}, "batch*`seq len` <= 44", {4, 11}, {5, 9}},
      {{DimExpr(5) - batch - seq}, "batch + `seq len` <= 5", {2, 3}, {3, 3}},
      {{batch - seq}, "batch - `seq len` >= 0", {3, 3}, {2, 3}},
      {{seq, 16}, "`seq len` % 16 = 0", {1, 32}, {1, 33}},
  };
  for (const Case &c : cases) {
    const std::string text = guardText(c.guard, symbols);
    INFO(text);
    TextReader in(text, "text");
    const Result<Guard> read = parseGuard(in, symbols);
    REQUIRE(read.ok());
    CHECK(*read == c.guard);
    CHECK(in.atEnd());
    CHECK(guardWords(std::vector{c.guard}, symbols) == c.words);
    CHECK(c.guard.holds(c.holds));
    CHECK(!c.guard.holds(c.fails));
  }
  CHECK(guardWords(std::vector{cases[0].guard, cases[6].guard}, symbols) ==
        "batch >= 16 and `seq len` % 16 = 0");
  CHECK(!Guard{batch * batch}.holds({INT64_MAX, 1}));
  for (const char *bad : {"(batch > 0)", "(batch % 0 == 0)", "(heads >= 0)", "(batch >= 0"}) {
    TextReader in(bad, "text");
    CHECK(!parseGuard(in, symbols).ok());
  }
}

// What nodes ask of sizes determines symbols, narrows them or is tested.
#include "Graph/SizeSolver.h"
#include "Graph/Graph.h"
#include "Support/DimProgram.h"
#include "Support/DimSolve.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using Answer = SizeSolver::Answer;
using Kind = SizeRule::Kind;

namespace {

/// A solver over these names, each of at least 1.
struct Sizes {
  SizeSolver solver;
  explicit Sizes(const std::vector<std::string> &names) {
    for (const std::string &name : names)
      solver.symbol({name}, false);
    solver.beginRound();
  }
  DimExpr dim(const std::string &text) const {
    auto parsed = DimExpr::parse(text, solver.symbols());
    REQUIRE(parsed.ok());
    return *parsed;
  }
  Answer ask(Kind kind, const std::string &left, const std::string &right,
             Need need = Need::Solved) {
    return solver.require({kind, dim(left), dim(right), "node", "Op", "so it must be"}, need);
  }
  Answer equal(const std::string &left, const std::string &right, Need need = Need::Solved) {
    return ask(Kind::Equal, left, right, need);
  }
  std::string value(const std::string &text) const {
    return solver.canonical(dim(text)).str(solver.symbols());
  }
  const Symbol &symbol(const std::string &name) const {
    return solver.symbols()[static_cast<size_t>(dim(name).symbolId())];
  }
};

} // namespace

TEST_CASE("an equality that determines a size replaces it everywhere") {
  Sizes s({"a", "b", "c", "past", "seq", "total"});
  CHECK(s.equal("b", "c") == Answer::Holds);
  CHECK(s.value("c*2 + a") == "a + b*2"); // the name that comes first stays
  CHECK(s.equal("total", "past + seq") == Answer::Holds);
  CHECK(s.value("total - past") == "seq");
  CHECK(s.equal("2*b", "128") == Answer::Holds);
  CHECK(s.value("c") == "64");
  CHECK(s.equal("c", "64") == Answer::Holds);
  CHECK(s.equal("b", "65") == Answer::Never);
  CHECK(s.solver.contradiction({Kind::Equal, s.dim("c"), s.dim("65"), "", "", ""}) ==
        ", where c is b by node 'node' (Op), and b is 64 by node 'node' (Op)");
}

TEST_CASE("a size that is tested to be at least another one is at least the least of it") {
  Sizes s({"mask", "length", "past", "n"});
  CHECK(s.ask(Kind::AtLeast, "length", "3") == Answer::Holds);
  CHECK(s.ask(Kind::AtLeast, "mask", "length + past", Need::Tested) == Answer::Holds);
  CHECK(s.symbol("mask").min == 4);
  // A run may leave this node out.
  const SizeRule inBranch{Kind::AtLeast, s.dim("n"), s.dim("length"),
                          "node",        "Op",       "so it must be"};
  CHECK(s.solver.require(inBranch, Need::Tested, true) == Answer::Holds);
  CHECK(s.symbol("n").min == 1);
}

TEST_CASE("what is said of sizes names each rule that made them what they are") {
  Sizes s({"n", "m", "k"});
  auto ask = [&](Kind kind, const std::string &left, const std::string &right, const char *node) {
    CHECK(s.solver.require({kind, s.dim(left), s.dim(right), node, "Op", ""}, Need::Solved) ==
          Answer::Holds);
  };
  ask(Kind::AtLeast, "n", "1", "of no use");
  ask(Kind::AtLeast, "n", "10", "top");
  ask(Kind::Equal, "m", "n", "sum");
  ask(Kind::Multiple, "n", "4", "blocks");
  CHECK(s.solver.contradiction({Kind::Equal, s.dim("m"), s.dim("5"), "", "", ""}) ==
        ", where n is at least 10 by node 'top' (Op), and m is n by node 'sum' (Op), and n is a "
        "multiple of 4 by node 'blocks' (Op)");
  CHECK(s.solver.contradiction({Kind::Equal, s.dim("m"), s.dim("16"), "", "", ""}) == "");
  CHECK(s.solver.contradiction({Kind::Equal, s.dim("k"), s.dim("0"), "", "", ""}) == "");
}

TEST_CASE("sizes that their ranges make equal are, though no symbol is solved") {
  Sizes s({"n"});
  const std::string rest = "max(min(n, 2) - min(n, 6), 0)";
  CHECK(s.equal(rest, "0") == Answer::Open);
  CHECK(s.ask(Kind::AtLeast, "n", "2") == Answer::Holds);
  CHECK(s.equal(rest, "0") == Answer::Holds);
  CHECK(s.equal(rest, "1") == Answer::Never);
  CHECK(s.value("n") == "n");
}

TEST_CASE("factors that are never 0 cancel") {
  Sizes s({"s10", "s21", "n", "m", "k"});
  CHECK(s.equal("s10*s21", "s21") == Answer::Holds);
  CHECK(s.value("s10") == "1");
  CHECK(s.equal("n*m*6", "n*k*3") == Answer::Holds);
  CHECK(s.value("k") == "m*2");
  CHECK(s.equal("3*n", "128") == Answer::Never);
  CHECK(s.equal("n + m", "1") == Answer::Never); // 2 is the least
}

TEST_CASE("what determines nothing stays open, and is tested where shapes can stand") {
  Sizes s({"n", "m", "k"});
  CHECK(s.equal("n*m", "k*k") == Answer::Open);
  CHECK(s.equal("2*n", "3*m") == Answer::Open);
  CHECK(s.equal("n*m", "k*k", Need::Tested) == Answer::Holds);
  CHECK(s.ask(Kind::Broadcast, "n", "12", Need::Tested) == Answer::Holds);
  CHECK(s.ask(Kind::AtLeast, "n*m", "4", Need::Tested) == Answer::Holds);
  CHECK_FALSE(s.solver.endRound());
  const SizeRules rules = s.solver.rules({0, 1, 2}, {});
  REQUIRE(rules.rules.size() == 3);
  for (const SizeRule &rule : rules.rules)
    CHECK(rule.tested);
  CHECK(rules.rules[1].kind == Kind::Broadcast);
}

TEST_CASE("a test that the rest decides is none") {
  Sizes s({"n", "m"});
  CHECK(s.ask(Kind::Broadcast, "n", "12", Need::Tested) == Answer::Holds);
  CHECK(s.equal("n", "12") == Answer::Holds);
  const SizeRules rules = s.solver.rules({1, 0}, {});
  REQUIRE(rules.rules.size() == 1);
  CHECK_FALSE(rules.rules[0].tested);
}

TEST_CASE("ranges meet, and a size of one value is that") {
  Sizes s({"free"});
  const SymbolId a = s.solver.symbol({"a", 2, 4, 64, 1}, true),
                 b = s.solver.symbol({"b", 16, 32, 256, 1}, true);
  CHECK(s.solver.require({Kind::Equal, DimExpr::symbol(a), DimExpr::symbol(b), "", "", ""},
                         Need::Solved) == Answer::Holds);
  CHECK(s.symbol("a").min == 16);
  CHECK(s.symbol("a").max == 64);
  CHECK(s.equal("a", "65") == Answer::Never);
  CHECK(s.ask(Kind::Multiple, "b", "64") == Answer::Holds);
  CHECK(s.value("b + free") == "free + 64");
  // A value that is no plain size narrows what it hangs on.
  Sizes t({"n", "m"});
  CHECK(t.equal("m", "n - 3") == Answer::Holds);
  CHECK(t.value("n") == "m + 3");
  CHECK(t.ask(Kind::AtLeast, "2*m - 5", "6") == Answer::Holds);
  CHECK(t.symbol("m").min == 6);
}

TEST_CASE("the size that stays is tuned for what the user favours of the other") {
  const auto any = static_cast<int64_t>(SymbolKind::Any);
  for (const int64_t favoured : {int64_t(32), any}) {
    Sizes s({});
    const SymbolId a = s.solver.symbol({"a", 1, any}, false),
                   b = s.solver.symbol({"b", 1, favoured, 250, 1}, true);
    CHECK(s.solver.require({Kind::Equal, DimExpr::symbol(a), DimExpr::symbol(b), "", "", ""},
                           Need::Solved) == Answer::Holds);
    CHECK(s.symbol("a").opt == favoured);
    CHECK(s.symbol("a").max == 250);
    CHECK(s.ask(Kind::Multiple, "a", "5") == Answer::Holds);
    CHECK(s.symbol("a").opt == (favoured == any ? any : 30));
  }
}

TEST_CASE("a table of rows bounds a size, but not one that the user speaks of") {
  Sizes s({"n"});
  CHECK(s.equal("min(n, 512)", "n") == Answer::Holds);
  CHECK(s.symbol("n").max == 512);
  const SymbolId m = s.solver.symbol({"m", 1, 1, 1000, 1}, true);
  const DimExpr e = DimExpr::symbol(m);
  CHECK(s.solver.require({Kind::Equal, min(e, DimExpr(512)), e, "", "", ""}, Need::Solved) ==
        Answer::Open);
}

TEST_CASE("assumptions wait for what must be, and go when more of it is found") {
  Sizes s({"a", "b"});
  CHECK(s.equal("a", "b", Need::Likely) == Answer::Holds);
  CHECK(s.value("b") == "b");
  CHECK(s.solver.endRound());
  CHECK(s.value("b") == "a");
  s.solver.beginRound();
  CHECK(s.equal("b", "1") == Answer::Holds); // of the sizes to broadcast this one is 1
  CHECK(s.value("a") == "1");
  CHECK(s.solver.endRound());
  CHECK(s.value("a") == "a");
  CHECK(s.value("b") == "1");
  Sizes t({"a", "b"});
  CHECK(t.equal("a", "b", Need::Likely) == Answer::Holds);
  CHECK(t.equal("b", "1") == Answer::Holds);
  CHECK(t.solver.endRound());
  CHECK(t.value("a") == "a");
  CHECK(t.value("b") == "1");
}

TEST_CASE("a choice is served until equality is assumed") {
  Sizes s({"a", "b", "c"});
  CHECK(s.ask(Kind::Either, "a", "b", Need::Case) == Answer::Holds);
  CHECK(s.ask(Kind::Broadcast, "c", "max(a, b)", Need::Case) == Answer::Holds);
  CHECK(s.solver.standsOn(SizeSolver::kCases));
  CHECK_FALSE(s.solver.endRound());
  CHECK(s.value("b") == "b");
  CHECK(s.solver.rules({0, 1, 2}, {}).rules.size() == 2);
  s.solver.beginRound();
  // What another node says of one of them decides.
  CHECK(s.ask(Kind::Either, "a", "b", Need::Case) == Answer::Holds);
  CHECK(s.ask(Kind::AtLeast, "b", "2", Need::Tested) == Answer::Holds);
  CHECK(s.equal("a", "7") == Answer::Holds);
  CHECK(s.ask(Kind::Either, "a", "b", Need::Case) == Answer::Holds);
  CHECK(s.value("b") == "7");
  CHECK(s.solver.giveUp(std::nullopt));
  CHECK_FALSE(s.solver.standsOn(SizeSolver::kCases));
  CHECK(s.solver.symbols().empty());
  s.solver.symbol({"a"}, false);
  s.solver.symbol({"b"}, false);
  s.solver.beginRound();
  CHECK(s.ask(Kind::Either, "a", "b", Need::Case) == Answer::Open);
  CHECK_FALSE(s.solver.giveUp(std::nullopt)); // nothing else has been built on
}

TEST_CASE("what rounds stand on is given up one by one, then several at once") {
  const SizeRule refused{Kind::Equal, DimExpr(1), DimExpr(1), "node", "Op", "needs an element"};
  Sizes s({});
  std::vector<std::string> given;
  do {
    std::string grounds;
    for (const auto &[ground, letter] :
         {std::pair(SizeSolver::kCases, 'c'), std::pair(SizeSolver::kEmpty, 'e'),
          std::pair(SizeSolver::kDeclared, 'd'), std::pair(SizeSolver::kUsual, 'l')})
      grounds += s.solver.standsOn(ground) ? letter : '-';
    given.push_back(grounds);
    for (const char *name : {"a", "b"})
      s.solver.symbol({name, 0}, false);
    CHECK(s.symbol("a").min == !s.solver.standsOn(SizeSolver::kEmpty));
    s.solver.beginRound();
    const bool isServed = s.ask(Kind::Either, "a", "b", Need::Case) == Answer::Holds;
    CHECK(isServed == s.solver.standsOn(SizeSolver::kCases));
    const bool isTaken = s.ask(Kind::Either, "a", "b", Need::Unlikely) == Answer::Holds;
    CHECK(isTaken != s.solver.standsOn(SizeSolver::kUsual));
  } while (s.solver.giveUp(refused));
  CHECK(given ==
        std::vector<std::string>{"cedl", "-edl", "c-dl", "--dl", "ced-", "-ed-", "c-d-", "--d-"});
}

TEST_CASE("sizes of 0 are given up for a node's refusal alone") {
  const SizeRule refused{Kind::Equal, DimExpr(1), DimExpr(1), "node", "Op", "needs an element"};
  Sizes s({});
  const auto round = [&] {
    s.solver.symbol({"a", 0}, false);
    s.solver.symbol({"b", 0}, false);
    s.solver.beginRound();
    s.ask(Kind::Either, "a", "b", Need::Case);
  };
  round();
  CHECK(s.solver.giveUp(refused)); // choices
  round();
  CHECK_FALSE(s.solver.giveUp(std::nullopt)); // an option is wrong, say
  CHECK(s.solver.standsOn(SizeSolver::kEmpty));
  CHECK(s.solver.giveUp(refused));
  CHECK_FALSE(s.solver.standsOn(SizeSolver::kEmpty));
  round();
  CHECK(s.symbol("a").min == 1);
}

TEST_CASE("what is declared is found last, and goes with what contradicts it") {
  Sizes s({"n", "m"});
  const SymbolId given = s.solver.symbol({"given", 1, 8, 64, 1}, true);
  CHECK(s.equal("n", "4", Need::Declared) == Answer::Holds);
  CHECK(s.equal("given", "4", Need::Declared) == Answer::Open); // it is for the user to say
  CHECK(s.equal("n*m", "12", Need::Declared) == Answer::Holds);
  CHECK(s.equal("n", "m", Need::Likely) == Answer::Holds);
  CHECK(s.value("n") == "n");
  CHECK(s.solver.endRound());
  CHECK(s.value("m") == "n");
  s.solver.beginRound();
  CHECK(s.equal("n", "4", Need::Declared) == Answer::Holds);
  CHECK(s.solver.endRound());
  CHECK(s.value("m") == "4");
  auto contradicted = s.solver; // nothing but what is declared can be given up
  CHECK(contradicted.giveUp(std::nullopt));
  CHECK_FALSE(contradicted.standsOn(SizeSolver::kDeclared));
  contradicted.symbol({"n"}, false);
  contradicted.beginRound();
  CHECK(contradicted.require({Kind::Equal, DimExpr::symbol(0), DimExpr(4), {}, {}, ""},
                             Need::Declared) == Answer::Open);
  CHECK_FALSE(contradicted.endRound());
  CHECK_FALSE(contradicted.giveUp(std::nullopt));
  s.solver.beginRound();
  CHECK(s.equal("n", "5", Need::Declared) == Answer::Never);
  CHECK(s.ask(Kind::Multiple, "given", "8") == Answer::Holds);
  CHECK(s.solver.endRound());
  CHECK(s.value("m") == "m");
  CHECK(s.symbol("given").divisor == 8);
  CHECK(given == 2);
  CHECK_FALSE(s.solver.giveUp(std::nullopt)); // no size stands on it any more
}

TEST_CASE("a test of runs that take a branch is fulfilled by the others") {
  Sizes s({"n", "m", "taken"});
  const auto isTaken = [&] { return std::optional(s.dim("taken")); };
  auto ask = [&](Kind kind, const std::string &left, const std::string &right) {
    CHECK(s.solver.require({kind, s.dim(left), s.dim(right), "node", "Op", "so it must be"},
                           Need::Tested, true, isTaken) == Answer::Holds);
  };
  ask(Kind::Equal, "n", "m");
  ask(Kind::AtLeast, "n", "m*2");
  ask(Kind::Multiple, "n*m", "4");
  ask(Kind::Broadcast, "n", "12");
  CHECK_FALSE(s.solver.endRound());
  const SizeRules rules = s.solver.rules({0, 1, 2}, {});
  REQUIRE(rules.rules.size() == 4);
  auto fulfilled = [&](int64_t n, int64_t m, int64_t taken) {
    const std::vector<int64_t> values{n, m, taken};
    std::string which;
    for (const SizeRule &r : rules.rules)
      which += holds(r.kind, r.left.evaluate(values), r.right.evaluate(values)) ? "y" : "n";
    return which;
  };
  CHECK(fulfilled(3, 5, 0) == "yyyy");
  CHECK(fulfilled(3, 5, 1) == "nnnn");
  CHECK(fulfilled(12, 12, 1) == "ynyy");
  CHECK(fulfilled(12, 6, 1) == "nyyy");
  CHECK(fulfilled(1, 1, 1) == "ynny");
}

TEST_CASE("rules have texts that read back") {
  const std::string text = "inferred b = [a*2] of (\"x\" 1, \"odd \\\"name\" 0)\n"
                           "rule equal [b, a*2] by \"mm\" \"MatMul\" \"the sizes must be equal\"\n"
                           "rule tested broadcast [a, 12] by \"add\" \"Add\" \"so\"\n"
                           "rule tested multiple [a, 4] by \"\" \"Split\" \"so\"\n"
                           "rule least [a + b, 7] by \"n\" \"TopK\" \"so\"\n"
                           "rule tested either [a, b] by \"add\" \"Add\" \"so\"\n";
  const std::vector<Symbol> symbols{{"a"}};
  ConstantStore store;
  const std::string head = "graph g\nsymbol a = 1..9 opt 1 divisor 1\n",
                    tail = "input %x: f32[a]\nreturn %x\n";
  auto g = parseGraph(head + text + tail, "t", store);
  INFO((g.ok() ? "" : format(g.errors()[0])));
  REQUIRE(g.ok());
  CHECK(sizeRulesText(g->sizeRules, g->symbols) == text);
  for (const char *bad : {"inferred a = [a] of ()\n", "rule equal [a, q] by \"\" \"\" \"\"\n",
                          "rule most [a, 1] by \"\" \"\" \"\"\n",
                          "rule equal [a] by \"\" \"\" \"\"\n", "inferred b = [b] of ()\n"})
    CHECK_FALSE(parseGraph(head + bad + tail, "t", store).ok());
}

TEST_CASE("a broken rule names the node, both sizes and where they come from") {
  SizeRules rules;
  rules.inferred = {{"c", DimExpr::symbol(0), {}}};
  rules.rules = {{Kind::Equal, DimExpr::symbol(0), DimExpr::symbol(1), "mm", "MatMul",
                  "the sizes to sum over must be equal"}};
  const std::vector<Symbol> symbols{{"b"}};
  CHECK(brokenRule(rules, symbols, {{5, "dimension 1 of input 'A'"}, {5, ""}}, true) == "");
  CHECK(brokenRule(rules, symbols, {{5, "dimension 1 of input 'A'"}, {6, ""}}, true) ==
        "node 'mm' (MatMul): the sizes to sum over must be equal: 'b' is 5 (dimension 1 of input "
        "'A') and 'c' is 6");
  CHECK(brokenRule(rules, symbols, {{5, ""}, {6, ""}}, false) == "");
  rules.rules[0].right = DimExpr::symbol(1) * DimExpr(2) + DimExpr::symbol(0);
  rules.rules[0].tested = true;
  CHECK(brokenRule(rules, symbols, {{5, ""}, {INT64_MAX, ""}}, false) ==
        "node 'mm' (MatMul): the sizes to sum over must be equal: 'b' is 5 and 'b + c*2' is not "
        "computable ('b' is 5, 'c' is 9223372036854775807)");
}

TEST_CASE("remainders tell which sizes are equal") {
  Sizes s({"h", "w"});
  auto unified = [&](const std::string &text) {
    return s.solver.unified(s.dim(text)).str(s.solver.symbols());
  };
  CHECK(unified("floordiv(h + 1, 2)") == "floordiv(h + 1, 2)");
  CHECK(unified("floordiv(h - 1 - mod(h - 1, 2), 2) + 1") == "floordiv(h + 1, 2)");
  CHECK(unified("floordiv(h, 2)") == "floordiv(h, 2)");
  CHECK(s.equal("floordiv(h + 1, 2)", "floordiv(h, 2)") == Answer::Holds);
  CHECK(s.symbol("h").divisor == 2);
  CHECK(s.value("floordiv(h, 2)*2 + 1") == "h + 1");
  CHECK(s.equal("floordiv(h, 8)*8", "h") == Answer::Holds);
  CHECK(s.symbol("h").divisor == 8);
  CHECK(s.value("floordiv(h, 4)*4*w") == "h*w");
  CHECK(s.value("floordiv(floordiv(h, 2), 2)") == "floordiv(h, 4)");
  CHECK(s.equal("floordiv(w, 2)*2 + 1", "w") == Answer::Open); // odd ones
  CHECK(s.equal("floordiv(w, 2)", "floordiv(w + 4, 2)") == Answer::Never);
}

TEST_CASE(
    "limits that shapes can do without are assumed together, where the user says nothing else") {
  const auto suppose = [](Sizes &s, const std::vector<std::string> &most) {
    std::vector<SizeRule> rules;
    for (const std::string &size : most)
      rules.push_back({Kind::AtLeast, s.dim("100"), s.dim(size), "node", "Op", "limit"});
    s.solver.suppose(rules);
    return s.solver.endRound();
  };
  Sizes both({"n", "m"});
  CHECK(suppose(both, {"n", "m*2"}));
  CHECK(both.symbol("n").max == 100);
  CHECK(both.symbol("m").max == 50);

  Sizes open({"n", "m"}); // no symbol solves the second one
  CHECK(!suppose(open, {"n", "n + m"}));
  CHECK(open.symbol("n").max == INT64_MAX);

  Sizes given({});
  given.solver.symbol({"n"}, false);
  given.solver.symbol({"m", 1, 1, 1000}, true);
  given.solver.symbol({"k"}, false);
  CHECK(!suppose(given, {"m"}));
  CHECK(given.equal("m", "n") == Answer::Holds); // and what the user's size turns out to be
  while (given.solver.endRound())
    given.solver.beginRound();
  CHECK(!suppose(given, {"n"}));
  CHECK(suppose(given, {"k"}));
  CHECK(given.symbol("m").max == 1000);
}

TEST_CASE("a size that has to be large enough bounds what it is made of") {
  Sizes s({"h", "w"});
  CHECK(s.ask(Kind::AtLeast, "floordiv(floordiv(h - 3, 2) - 2, 2) + 1", "1", Need::Tested) ==
        Answer::Holds);
  CHECK(s.symbol("h").min == 7);
  CHECK(s.ask(Kind::AtLeast, "floordiv(h, 2) + w", "9", Need::Tested) == Answer::Holds);
  CHECK(s.symbol("h").min == 7);
}

TEST_CASE("a part of sizes that hangs on itself is what it has to be, and tested") {
  Sizes s({"h", "w"});
  CHECK(s.equal("floordiv(h, 2)", "floordiv(h, 4)*2") == Answer::Holds);
  CHECK(s.value("floordiv(h, 2)*w + 1") == "w*floordiv(h, 4)*2 + 1");
  CHECK(s.equal("floordiv(h, 4)", "floordiv(h, 8)*2") == Answer::Holds);
  CHECK(s.value("floordiv(h, 2)") == "floordiv(h, 8)*4");
  CHECK(s.equal("floordiv(w + 1, 2)", "1") == Answer::Holds);
  CHECK(s.value("floordiv(w + 1, 2)") == "1");
  CHECK(s.solver.endRound());
  const SizeRules rules = s.solver.rules({0, 1}, {});
  REQUIRE(rules.rules.size() == 3);
  for (const SizeRule &rule : rules.rules)
    CHECK(rule.tested);
  CHECK(s.equal("h", "12") == Answer::Holds); // of which no size is left to be another
  CHECK(s.value("floordiv(h, 2)") == "6");
}

TEST_CASE("what a part is goes on being followed where a range leaves one size") {
  Sizes s({"m"});
  s.solver.symbol({"n", 1, 1, 4, 1}, true);
  CHECK(s.equal("floordiv(m, 2)", "2*n") == Answer::Holds);
  CHECK(s.value("floordiv(m, 2)") == "n*2");
  CHECK(s.ask(Kind::AtLeast, "n", "4", Need::Tested) == Answer::Holds);
  CHECK(s.value("floordiv(m, 2)") == "8");
}

TEST_CASE("what runs may leave out determines nothing for all of them") {
  Sizes s({"n", "m"});
  const SizeRule rule{Kind::Equal, s.dim("n"), s.dim("m"), "node", "Op", "so it must be"};
  CHECK(s.solver.require(rule, Need::Solved, true) == Answer::Open);
  CHECK(s.solver.require(rule, Need::Likely, true) == Answer::Open);
  CHECK(s.solver.require(rule, Need::Tested, true) == Answer::Holds);
  CHECK_FALSE(s.solver.endRound());
  CHECK(s.value("m") == "m");
  const SizeRules rules = s.solver.rules({0, 1}, {});
  REQUIRE(rules.rules.size() == 1);
  CHECK(rules.rules[0].tested);
}

TEST_CASE("what a branch needs is solved in it alone, and tested in runs that take it") {
  Sizes s({"n", "m", "k", "which"});
  const SizeSolver::IsTaken first = [&] { return std::optional(s.dim("which")); },
                            second = [&] { return std::optional(s.dim("1 - which")); };
  auto inBranch = [&](const std::string &right, const SizeSolver::IsTaken &isTaken) {
    return s.solver.require({Kind::Equal, s.dim("n"), s.dim(right), "node", "Op", ""}, Need::Solved,
                            true, isTaken);
  };
  s.solver.enterBranch("if/then", first);
  CHECK(inBranch("m", first) == Answer::Holds);
  CHECK(s.value("m + k") == "n + k");
  s.solver.leaveBranch();
  CHECK(s.value("m + k") == "m + k");
  s.solver.enterBranch("if/else", second);
  CHECK(s.value("m") == "m");
  CHECK(inBranch("4", second) == Answer::Holds);
  CHECK(s.value("n") == "4");
  s.solver.leaveBranch();
  CHECK(inBranch("k", {}) == Answer::Open); // nothing tells which runs take it

  CHECK(s.solver.endRound());
  s.solver.beginRound();
  s.solver.enterBranch("if/then", first);
  CHECK(s.value("m + k") == "n + k");
  s.solver.leaveBranch();
  s.solver.enterBranch("if/else", second);
  CHECK(s.value("n + m") == "m + 4");
  const SymbolId inside = s.solver.symbol({"inside"}, false);
  s.solver.leaveBranch();
  CHECK(s.value("n + inside") == "n + inside");
  CHECK(!s.solver.endRound());

  const SizeRules rules = s.solver.rules({0, 1, 2, 3, inside}, {});
  REQUIRE(rules.rules.size() == 2);
  auto allHold = [&](const std::vector<int64_t> &sizes) {
    return std::ranges::all_of(rules.rules, [&](const SizeRule &rule) {
      CHECK(rule.tested);
      return holds(rule.kind, rule.left.evaluate(sizes), rule.right.evaluate(sizes));
    });
  };
  CHECK(allHold({7, 7, 1, 1, 1}));
  CHECK(!allHold({7, 6, 1, 1, 1}));
  CHECK(allHold({4, 6, 1, 0, 1}));
  CHECK(!allHold({7, 7, 1, 0, 1}));
}

TEST_CASE("sizes that always are large enough need no test") {
  Sizes s({"h"});
  CHECK(s.ask(Kind::AtLeast, "h - mod(h + 1, 2) + 2", "3", Need::Tested) == Answer::Holds);
  CHECK_FALSE(s.solver.endRound());
  CHECK(s.solver.rules({0}, {}).rules.empty());
  CHECK(s.ask(Kind::AtLeast, "h - mod(h + 1, 2) + 2", "4", Need::Tested) == Answer::Holds);
  CHECK(s.solver.rules({0}, {}).rules.size() == 1);
  Sizes two({"n", "m", "k"});
  for (const char *size : {"max(n, m) - n", "max(n, m + k)*2 - m*2", "n - min(n, m)"})
    CHECK(two.ask(Kind::AtLeast, size, "0") == Answer::Holds);
  CHECK(two.ask(Kind::AtLeast, "max(n, m) - n - 1", "0") == Answer::Open);
  CHECK(two.ask(Kind::AtLeast, "n - max(n, m)", "0") == Answer::Open);
}

TEST_CASE("a computed size is what it has to be, and tested; no size of inputs follows from it") {
  auto computed = [](const char *name, int64_t offset) {
    Symbol c{name, -4, 0, 1000, 1};
    DimProgram program;
    using Op = DimProgram::Op;
    program.code = {{Op::Symbol, DType::I64, {-1, -1, -1}, 0},
                    {Op::Cast, DType::F32, {0, -1, -1}, 0},
                    {Op::Cast, DType::I64, {1, -1, -1}, 0},
                    {Op::Integer, DType::I64, {-1, -1, -1}, offset},
                    {Op::Add, DType::I64, {2, 3, -1}, 0}};
    c.definition = std::make_shared<DimProgram>(std::move(program));
    return c;
  };
  for (const std::string order : {"first", "second"}) {
    Sizes s({"n", "m"});
    const SymbolId c = s.solver.symbol(computed("c", 1), false);
    CHECK(s.solver.symbol(computed("of another import", 1), false) == c);
    CHECK(s.solver.symbol(computed("d", 2), false) == c + 1);
    CHECK(s.equal(order == "first" ? "c" : "n", order == "first" ? "n" : "c") == Answer::Holds);
    CHECK(s.value("c*2 + 1") == "n*2 + 1");
    CHECK(s.value("n + m") == "n + m");
    CHECK(s.equal("m + d", "floordiv(n, 2)") == Answer::Holds);
    CHECK(s.value("d") == "m*-1 + floordiv(n, 2)");
    CHECK(s.value("floordiv(n, 2)") == "floordiv(n, 2)");
    const SizeRules rules = s.solver.rules({0, 1, 2, 3}, {});
    REQUIRE(rules.rules.size() == 2);
    CHECK((rules.rules[0].tested && rules.rules[1].tested));
    CHECK(s.equal("n*3", "c*3 + m*3") == Answer::Never); // m is at least 1
  }
  Sizes s({"n", "m"});
  s.solver.symbol(computed("c", 1), false);
  CHECK(s.ask(Kind::AtLeast, "c", "3") == Answer::Holds);
  CHECK(s.ask(Kind::Multiple, "c", "2") == Answer::Holds);
  CHECK(s.symbol("c").min == 4);
  CHECK(s.equal("c", "1000") == Answer::Holds);
  CHECK(s.value("c") == "1000");
  CHECK(s.equal("c", "998") == Answer::Never);
}

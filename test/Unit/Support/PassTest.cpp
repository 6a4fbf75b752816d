#include "Support/RunPasses.h"

#include <catch2/catch_test_macros.hpp>

/// A program of one number, which must not be negative.
namespace toy {
struct Number {
  int value = 0;
};
fusec::Status verify(const Number &n) {
  if (n.value < 0)
    return fusec::Diagnostic{fusec::Diag::BadIr, "number",
                             "expected 0 or more, given " + std::to_string(n.value)};
  return fusec::success();
}
std::string print(const Number &n) { return "number " + std::to_string(n.value) + "\n"; }
} // namespace toy

using namespace fusec;
using toy::Number;

namespace {

Pass<Number> add(std::string_view name, int amount) {
  return {name, "adds", [amount](Number &n) {
            n.value += amount;
            return success();
          }};
}

struct Made {
  int asked = 0;
  std::function<Result<Number>()> source(int value) {
    return [this, value]() -> Result<Number> {
      ++asked;
      return Number{value};
    };
  }
};

} // namespace

TEST_CASE("passes run in order, are timed, and print behind those that are asked for") {
  Made made;
  std::vector<std::string> timed;
  std::string texts;
  PassObserver observer;
  observer.onTime = [&](std::string_view pass, double seconds) {
    CHECK(seconds >= 0);
    timed.emplace_back(pass);
  };
  observer.wantsText = [](std::string_view pass) { return pass == "two"; };
  observer.onText = [&](std::string_view pass, const std::string &text) {
    texts += std::string(pass) + ": " + text;
  };
  auto result =
      runPasses<Number>(made.source(1), {add("one", 1), add("two", 2), add("three", 3)}, observer);
  REQUIRE(result.ok());
  CHECK(result->value == 7);
  CHECK(timed == std::vector<std::string>{"one", "two", "three"});
  CHECK(texts == "two: number 4\n");
  CHECK(made.asked == 1);
}

TEST_CASE("a pass that breaks a rule is named, with the program before it") {
  Made made;
  std::string before;
  PassObserver observer;
  observer.onBroken = [&](std::string_view pass, const std::string &text) {
    before += std::string(pass) + ": " + text;
  };
  auto result =
      runPasses<Number>(made.source(1), {add("up", 2), add("down", -5), add("more", 9)}, observer);
  REQUIRE(!result.ok());
  CHECK(before == "down: number 3\n");
  CHECK(made.asked == 2);
  CHECK(format(result.errors().front()) ==
        "error[E1000] number: expected 0 or more, given -2; the pass 'down' left it so, which is a "
        "bug: please report it with the model");
}

TEST_CASE("a source that breaks a rule keeps its own error, and a pass that refuses ends the run") {
  Made made;
  auto bad = runPasses<Number>(made.source(-1), {add("up", 2)}, {});
  REQUIRE(!bad.ok());
  CHECK(bad.errors().front().id == Diag::BadIr);
  const Pass<Number> refuses = {"refuses", "", [](Number &) -> Status {
                                  return Diagnostic{Diag::LimitExceeded, "number", "too large"};
                                }};
  auto refused = runPasses<Number>(made.source(1), {refuses, add("down", -5)}, {});
  REQUIRE(!refused.ok());
  CHECK(refused.errors().front().id == Diag::LimitExceeded);
}

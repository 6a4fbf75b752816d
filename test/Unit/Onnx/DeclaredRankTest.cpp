// Squeeze without axes over open sizes: what the model declares says which of them are 1.
#include "Models.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

std::string squeezed(const std::vector<D> &in, const std::vector<D> &declared,
                     const ImportOptions &options = {}) {
  ModelMaker m;
  m.input("x", in).output("y", declared);
  m.node("Squeeze", {"x"}, {"y"});
  const auto g = m.import(options);
  return outcome(g) + (g.ok() ? sizeRulesText(g->sizeRules, g->symbols) : "");
}

bool isRefused(const std::string &said) {
  return said.find("E4004") != std::string::npos &&
         said.find("the node names no axes, so the sizes must be known") != std::string::npos;
}

constexpr const char *kStays =
    "rule least [n, 2] by \"Squeeze_y\" \"Squeeze\" \"the node names no axes and the model "
    "declares that dimension 0 stays, so it must be larger than 1\"\n";

} // namespace

TEST_CASE("squeeze by rank: fixed sizes of 1 go, open ones stay and are not 1") {
  CHECK(squeezed({"n", 1, 3}, {"n", 3}) == "f32[n,3]\n" + std::string(kStays));
}

TEST_CASE("squeeze by rank: all open sizes are 1") {
  const std::string said = squeezed({"n", 1, "m"}, {});
  CHECK(said.rfind("f32[]\n", 0) == 0);
  CHECK(said.find("rule equal [n, 1]") != std::string::npos);
  CHECK(said.find("rule equal [m, 1]") != std::string::npos);
}

TEST_CASE("squeeze by rank: declared sizes tell which one goes") {
  CHECK(squeezed({"n", "m", 3}, {"n", 3}).rfind("f32[n,3]\n", 0) == 0);
  CHECK(squeezed({"n", "m", 3}, {"m", 3}).rfind("f32[m,3]\n", 0) == 0);
}

TEST_CASE("squeeze by rank: refused where more than one choice is left") {
  CHECK(isRefused(squeezed({"n", "m", 3}, {"k", 3})));
  CHECK(isRefused(squeezed({"n", "n", 3}, {"n", 3})));
  CHECK(isRefused(squeezed({"n", 2, 3}, {"n", 2, 3, 1})));
  ModelMaker m;
  m.input("x", {"n", 1}).output("y");
  m.node("Squeeze", {"x"}, {"y"});
  CHECK(isRefused(outcome(m.import())));
}

TEST_CASE("squeeze by rank: element-wise nodes of one operand hand the rank back") {
  ModelMaker m;
  m.input("x", {"batch", 1}).output("y", std::vector<D>{}).ints("four", {4}, true);
  attribute(m.node("Cast", {"four"}, {"f"}), "to", 1);
  m.node("Squeeze", {"x"}, {"s"});
  m.node("Sigmoid", {"s"}, {"t"});
  m.node("Mul", {"f", "t"}, {"y"});
  CHECK(outcome(m.import()) == "f32[]\n");

  ModelMaker other; // the result may have its rank from w
  other.input("x", {"batch", 1}).input("w", {3}).output("y", {3});
  other.node("Squeeze", {"x"}, {"s"});
  other.node("Mul", {"s", "w"}, {"y"});
  CHECK(isRefused(outcome(other.import())));
}

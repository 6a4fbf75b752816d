// Reductions that use the results of others run in one pass where their algebra allows it, and mean the same.
#include "Cascades.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("the sum of softmax joins its maximum") {
  auto p = repaired(pairOf(kMax, "sum f64\n  %s = exp(sub(%x[i, k], %r[i]))"));
  REQUIRE(p.items.size() == 1);
  const std::string text = print(p, nullptr);
  CHECK(text.substr(text.find("reduction")) == R"(reduction s [i:5; k:37] cascade f64
  let t0 = %x[i, k];
  let t1 = select(eq(state(0), -inf), f64 0.0, state(0));
  %r = max t0
  %s = sum exp(sub(t0, t1))
  correct 1 = select(eq(part(1), 0.0), part(1), mul(part(1), exp(sub(select(eq(part(0), -inf), 0.0, part(0)), t1))))
)");
}

TEST_CASE("maps between two reductions are written into the second one, and stay for others") {
  auto p = parse(ProgramText("softmax", "", "f64")
                     .input("x", "5,37")
                     .reduction("m", "i:5; k:37", "max", "%x[i, k]")
                     .map("e", "i:5, k:37", "exp(sub(%x[i, k], %m[i]))")
                     .reduction("s", "i:5; k:37", "sum", "%e[i, k]")
                     .map("y", "i:5, k:37", "div(%e[i, k], %s[i])"));
  std::mt19937 random(1);
  check(p, random);
  const ExprProgram one = repaired(p);
  REQUIRE(one.items.size() == 3);
  CHECK(!equation(one, 0).states.empty());
  CHECK(equation(one, 1).name == "e");
}

TEST_CASE("families of pairs that satisfy the algebra") {
  std::mt19937 random(7);
  // R: what a maximum or minimum r is of; a sum stays out of exponents.
  const std::vector<std::string> firsts = {kMax, "min f64\n  %r = %x[i, k]", kSum,
                                           "max f64\n  %r = mul(%x[i, k], 3.0)",
                                           "sum f64\n  %r = mul(%x[i, k], %y[i, k])"};
  const std::vector<std::string> factors = {"%y[i, k]",
                                            "%r[i]",
                                            "neg(%x[i, k])",
                                            "abs(mul(%x[i, k], %r[i]))",
                                            "sin(%y[i, k])",
                                            "log(add(%r[i], 2.0))",
                                            "exp(sub(R, %r[i]))",
                                            "exp(mul(sub(R, %r[i]), 0.25))",
                                            "exp(sub(%r[i], R))",
                                            "exp(neg(div(sub(%r[i], R), 3.0)))",
                                            "exp(sub(R, max(%r[i], 0.75)))"};
  int cascades = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string first = firsts[random() % firsts.size()];
    const bool isSum = first.starts_with("sum");
    auto any = [&] { return factors[random() % (isSum ? 6 : factors.size())]; };
    std::string value = any();
    for (int more = static_cast<int>(random() % 3); more > 0; --more)
      value = (random() % 3 ? "mul(" : "div(") + value + ", " + any() + ")";
    if (value.find("%r") == std::string::npos)
      value = "mul(" + value + ", " + (isSum ? "%r[i]" : factors[6]) + ")";
    const std::string own = first.substr(first.find("= ") + 2);
    for (size_t at; (at = value.find('R')) != std::string::npos;)
      value.replace(at, 1, own);
    INFO(first << "; " << value);
    const ExprProgram p = pairOf(first, "sum f64\n  %s = " + value);
    check(p, random);
    for (const Item &item : repaired(p).items)
      cascades += !std::get<Equation>(item.value).states.empty();
  }
  CHECK(cascades > 20); // not all of them only wait for a factor
}

TEST_CASE("maxima and minima let go of what is added, and of positive factors") {
  std::mt19937 random(8);
  for (const char *monoid : {"max", "min"})
    for (const char *value :
         {"sub(%x[i, k], %r[i])", "add(mul(%r[i], 2.0), neg(%y[i, k]))",
          "mul(%y[i, k], exp(sub(%x[i, k], %r[i])))", "div(add(%x[i, k], %r[i]), 4.0)"})
      check(pairOf(kMax, std::string(monoid) + " f64\n  %s = " + value), random);
}

TEST_CASE("mean and squared deviations become counts, sums and squares around the mean so far") {
  std::mt19937 random(9);
  for (const char *mean : {"div(%r[i], 37.0)"})
    check(pairOf(kSum, std::string("sum f64\n  let t0 = sub(%x[i, k], ") + mean +
                           ");\n  %s = mul(t0, t0)"),
          random);
  // Expanded by hand, with a factor, and around a weighted mean, where a state of its own is the weight.
  check(pairOf("sum f64\n  %r = mul(%x[i, k], 2.0)",
               "sum f64\n  let t0 = sub(mul(%x[i, k], 2.0), div(%r[i], 37.0));\n"
               "  %s = mul(mul(t0, 0.5), t0)"),
        random);
  auto weighted = parse(ProgramText("weighted", "", "f64")
                            .input("x", "5,37")
                            .input("y", "5,37")
                            .reduction("w", "i:5; k:37", "sum", "%y[i, k]")
                            .reduction("r", "i:5; k:37", "sum", "mul(%x[i, k], %y[i, k])")
                            .reduction("s", "i:5; k:37", "sum", "mul(%y[i, k], mul(t0, t0))",
                                       "let t0 = sub(%x[i, k], div(%r[i], %w[i]));")
                            .output("w")
                            .output("r"));
  check(weighted, random);
  CHECK(cascadeIn(repaired(weighted)).states.size() == 3);

  // In f32 and far from zero, where the difference of E[x^2] and E[x]^2 would have no digit left.
  std::string text = print(pairOf(kSum, "sum f64\n  let t0 = sub(%x[i, k], div(%r[i], 37.0));\n"
                                        "  %s = mul(t0, t0)"),
                           nullptr);
  for (size_t at; (at = text.find("f64")) != std::string::npos;)
    text.replace(at, 3, "f32");
  const ExprProgram p = parse(text), one = repaired(p);
  CHECK(cascadeIn(one).states.size() == 3);
  auto inputs = inputsOf(p, random, 1e4, 1);
  for (TensorValue &t : inputs)
    t.round();
  auto exact = evaluate(p, inputs, {.floatsInDouble = true, .observer = {}});
  REQUIRE(exact.ok());
  requireClose(run(one, inputs), *exact, 1e-2);
}

TEST_CASE("chains of three, and one with further rows") {
  // The second one makes zeros of lines that are masked whole.
  for (const bool zeroMasked : {false, true}) {
    std::mt19937 random(10);
    ProgramText text("attention", "", "f64");
    text.input("x", "5,37").input("v", "37,3").reduction("m", "i:5; k:37", "max", "%x[i, k]");
    if (zeroMasked)
      text.map("from", "i:5", "select(eq(%m[i], -inf), 0.0, %m[i])");
    const std::string from = zeroMasked ? "%from[i]" : "%m[i]";
    text.map("p", "i:5, k:37", "exp(sub(%x[i, k], " + from + "))")
        .reduction("l", "i:5; k:37", "sum", "%p[i, k]")
        .map("inverse", "i:5",
             zeroMasked ? "select(eq(%l[i], 0.0), %l[i], div(1.0, %l[i]))" : "div(1.0, %l[i])")
        .map("q", "i:5, k:37", "mul(%p[i, k], %inverse[i])")
        .reduction("first", "i:5; k:37", "sum", "mul(%q[i, k], %v[k, 0])")
        .reduction("o", "i:5, j:3; k:37", "sum", "mul(%q[i, k], %v[k, j])");
    auto p = parse(text);
    check(p, random);
    const ExprProgram one = repaired(p);
    INFO(print(one, nullptr));
    if (zeroMasked) {
      std::vector<TensorValue> inputs = inputsOf(p, random);
      for (int64_t k = 0; k < 37; ++k)
        inputs[0].setNumber(2 * 37 + k, -HUGE_VAL);
      const std::vector<TensorValue> outputs = run(one, inputs);
      requireClose(outputs, run(p, inputs), 1e-12);
      CHECK(outputs[0].number(2) == 0);
    }
    int cascades = 0;
    for (const Item &item : one.items) {
      const Equation &e = std::get<Equation>(item.value);
      cascades += !e.states.empty();
      CHECK(e.name != "p");
      CHECK(e.name != "q");
      if (e.numSpatial == 2 && !e.states.empty())
        CHECK(e.states.size() == 2); // the maximum is carried along; the division waits
    }
    CHECK(cascades == 2);
  }
}

TEST_CASE("RMSNorm folds through a contraction") {
  std::mt19937 random(11);
  auto p = parse(
      ProgramText("rms", "", "f64")
          .input("x", "5,37")
          .input("w", "37,3")
          .input("g", "37")
          .reduction("s", "i:5; k:37", "sum", "mul(%x[i, k], %x[i, k])")
          .map("n", "i:5, k:37", "mul(div(%x[i, k], sqrt(add(div(%s[i], 37.0), 0.00001))), %g[k])")
          .reduction("y", "i:5, j:3; k:37", "sum", "mul(%n[i, k], %w[k, j])"));
  check(p, random);
  const ExprProgram one = repaired(p);
  REQUIRE(one.items.size() == 3);
  for (NodeId id : equation(one, 1).body.reachable(bodyRoots(equation(one, 1))))
    CHECK(!(isRead(equation(one, 1).body[id]) &&
            one.tensors[static_cast<size_t>(equation(one, 1).body[id].index)].name == "s"));
}

TEST_CASE("of two pairs that need each other's first results one becomes a pass") {
  auto p = parse(ProgramText("joint", "", "f64")
                     .input("x", "5,37")
                     .input("y", "5,41")
                     .reduction("a", "i:5; k:37", "max", "%x[i, k]")
                     .reduction("b", "i:5; k:41", "max", "%y[i, k]")
                     .map("m", "i:5", "max(%a[i], %b[i])")
                     .reduction("s", "i:5; k:37", "sum", "exp(sub(%x[i, k], %m[i]))")
                     .reduction("t", "i:5; k:41", "sum", "exp(sub(%y[i, k], %m[i]))"));
  std::mt19937 random(3);
  check(p, random);
}

TEST_CASE("what stands against one pass is said") {
  auto refusal = [](const std::string &first, const std::string &second) {
    return refusalOf(pairOf(first, second));
  };
  CHECK(refusal(kMax, "sum f64\n  %s = sin(add(%x[i, k], %r[i]))") ==
        "s: sin mixes its elements with a result that is still changing");
  CHECK(refusal(kMax, "sum f64\n  %s = exp(mul(%x[i, k], %r[i]))") ==
        "s: mul mixes its elements with a result that is still changing");
  CHECK(refusal(kMax, "sum f64\n  %s = add(exp(sub(%x[i, k], %r[i])), %y[i, k])") ==
        "s: add mixes its elements with a result that is still changing");
  CHECK(refusal(kMax, "prod f64\n  %s = exp(sub(%x[i, k], %r[i]))") ==
        "s: nothing moves out of a reduction by prod");
  CHECK(refusal(kMax, "max f64\n  %s = mul(%x[i, k], %r[i])") ==
        "s: a factor whose sign is not known does not move out of a reduction by max");
  // Deviations from what is not the mean: right in exact numbers only.
  CHECK(refusal(kMax, "sum f64\n  let t0 = sub(%x[i, k], %r[i]);\n  %s = mul(t0, t0)") ==
        "s: sub mixes its elements with a result that is still changing");
  CHECK(refusal(kSum, "sum f64\n  let t0 = sub(%x[i, k], div(%r[i], 36.0));\n  %s = mul(t0, t0)") ==
        "s: sub mixes its elements with a result that is still changing");
  CHECK(refusal(
            kSum,
            "sum f64\n  let t0 = sub(%x[i, k], div(%r[i], 37.0));\n  %s = mul(mul(t0, t0), t0)") ==
        "s: sub mixes its elements with a result that is still changing");
  CHECK(refusal(kMax, "sum f64\n  %s = mul(%r[i], exp(sub(%x[i, k], %r[floormod(i + 1, 5)])))") ==
        "s: reads a result at several rows or under a condition");
  // e^(x - mean so far) is infinite where x is 1000 and the mean still near 0, e^(y - max(x so far)) where the largest
  // x comes last.
  const std::string early =
      "s: exp may overflow before the results in its exponent have their last values";
  CHECK(refusal(kSum, "sum f64\n  %s = exp(sub(%x[i, k], div(%r[i], 37.0)))") == early);
  CHECK(refusal(kMax, "sum f64\n  %s = exp(sub(%y[i, k], %r[i]))") == early);
  CHECK(refusal(kMax, "sum f64\n  %s = exp(sub(mul(%x[i, k], 0.25), %r[i]))") == early);
  CHECK(refusalOf(parse(R"(expr index
tensor %x: f64[5,37] input
tensor %r: f64[5] temp
tensor %s: f64[5] output
tensor %at: i64[5] output
inputs (%x)
outputs (%s, %at)
reduction r [i:5; k:37] max f64
  %r = %x[i, k]
reduction s [i:5; k:37] argmax f64
  %s = sub(%x[i, k], %r[i])
  %at = k
)")) == "s: finds an index, which the rounding of corrected elements could change");
  CHECK(refusalOf(parse(ProgramText("integers", "", "i64")
                            .input("x", "5,37")
                            .reduction("r", "i:5; k:37", "max", "%x[i, k]")
                            .reduction("s", "i:5; k:37", "sum", "sub(%x[i, k], %r[i])"))) ==
        "s: does not accumulate floats");
  // What is scaled in order to be squared.
  CHECK(
      refusal("max f64\n  %r = abs(%x[i, k])",
              "sum f64\n  let t0 = div(%x[i, k], %r[i]);\n  %s = mul(t0, t0)") ==
      "s: squares elements that are scaled, which may be too large or small to be squared as they "
      "are");
}

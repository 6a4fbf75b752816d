// Alternatives of a pattern compute what the pattern does, up to rounding.
#include "Expr/Alternatives.h"
#include "ProgramTools.h"

#include <cmath>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Relative to the largest element, for sums of numbers of either sign.
bool close(const std::vector<TensorValue> &a, const std::vector<TensorValue> &b, double tolerance) {
  if (a.size() != b.size())
    return false;
  for (size_t o = 0; o < a.size(); ++o) {
    if (a[o].dims != b[o].dims || a[o].ints != b[o].ints)
      return false;
    double largest = 1;
    for (int64_t i = 0; i < b[o].numElements(); ++i)
      largest = std::max(largest, std::abs(b[o].number(i)));
    for (int64_t i = 0; i < b[o].numElements(); ++i)
      if (!(std::abs(a[o].number(i) - b[o].number(i)) <= tolerance * largest))
        return false;
  }
  return true;
}

/// Numbers in [0.5, 1.5) with all bits, which products and quotients round.
std::vector<TensorValue> roughInputs(const ExprProgram &p, std::mt19937 &random) {
  std::vector<TensorValue> out;
  for (TensorId id : p.inputs) {
    std::vector<int64_t> dims;
    for (const DimExpr &d : p.tensors[static_cast<size_t>(id)].shape)
      dims.push_back(d.constValue());
    TensorValue t(p.tensors[static_cast<size_t>(id)].type, dims);
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.setNumber(i, 0.5 + static_cast<double>(random()) / 4294967296.0);
    out.push_back(std::move(t));
  }
  return out;
}

ExprProgram apply(const ExprProgram &pattern, const Rewrite &rewrite) {
  std::optional<ExprProgram> made = rewritten(pattern, {rewrite});
  if (!made)
    FAIL("does not apply\n" << print(pattern, nullptr));
  requireValid(*made);
  CHECK(made->inputs == pattern.inputs);
  CHECK(made->outputs == pattern.outputs);
  return std::move(*made);
}

} // namespace

TEST_CASE("factors that a sum does not run over leave it") {
  struct {
    const char *result;
    const char *sum, *behind; // nullptr: the alternative does not apply
  } cases[] = {
      {"div(%a[i, k], %d[i])", "%a[i, k]", "div(%y.sum[i], %d[i])"},
      {"mul(%d[i], %a[i, k])", "%a[i, k]", "mul(%y.sum[i], %d[i])"},
      {"mul(mul(%a[i, k], %d[i]), %b[k])", "mul(%a[i, k], %b[k])", "mul(%y.sum[i], %d[i])"},
      {"div(%d[i], %a[i, k])", "div(1.0, %a[i, k])", "mul(%y.sum[i], %d[i])"},
      {"mul(0.125, %a[i, k])", "%a[i, k]", "mul(%y.sum[i], 0.125)"},
      {"div(mul(%a[i, k], %b[k]), mul(%d[i], 3.0))", "mul(%a[i, k], %b[k])",
       "div(div(%y.sum[i], %d[i]), 3.0)"},
      {"mul(%a[i, k], %b[k])", nullptr, nullptr},
      {"mul(%d[i], %d[i])", nullptr, nullptr},
      {"add(%d[i], %a[i, k])", nullptr, nullptr},
      {"exp(div(%a[i, k], %d[i]))", nullptr, nullptr},
      // what is scaled in order to be squared
      {"mul(div(%a[i, k], %d[i]), div(%a[i, k], %d[i]))", nullptr, nullptr},
  };
  std::mt19937 random(1);
  for (const auto &c : cases) {
    INFO(c.result);
    ExprProgram pattern = parse(std::string(R"(expr sum
tensor %a: f32[5,7] input
tensor %b: f32[7] input
tensor %d: f32[5] input
tensor %y: f32[5] output
inputs (%a, %b, %d)
outputs (%y)
reduction y [i:5; k:7] sum f32
  %y = )") + c.result + "\n");
    if (!c.sum) {
      CHECK(!rewritten(pattern, {{"defer-division", 0}}));
      continue;
    }
    ExprProgram made = apply(pattern, {"defer-division", 0});
    REQUIRE(made.items.size() == 2);
    CHECK(body(made, 0) == "%y.sum = " + std::string(c.sum));
    CHECK(body(made, 1) == "%y = " + std::string(c.behind));
    std::vector<TensorValue> inputs = roughInputs(pattern, random);
    CHECK(close(run(made, inputs), run(pattern, inputs), 1e-6));
  }
}

TEST_CASE("a factor that varies along one of the axes that a sum runs over stays") {
  const ExprProgram pattern = parse(R"(expr axes
tensor %a: f32[5,7,3] input
tensor %b: f32[3] input
tensor %d: f32[5] input
tensor %y: f32[5] output
inputs (%a, %b, %d)
outputs (%y)
reduction y [i:5; k:7, l:3] sum f32
  %y = mul(mul(%a[i, k, l], %b[l]), %d[i])
)");
  const ExprProgram made = apply(pattern, {"defer-division", 0});
  CHECK(body(made, 0) == "%y.sum = mul(%a[i, k, l], %b[l])");
  CHECK(body(made, 1) == "%y = mul(%y.sum[i], %d[i])");
}

TEST_CASE("a factor stays in sums of other types and in other monoids") {
  for (const char *kind : {"max f32", "prod f32", "sum i32"}) {
    std::string type = std::string(kind).substr(std::string(kind).size() - 3);
    ExprProgram pattern =
        parse("expr other\ntensor %a: " + type + "[5,7] input\ntensor %d: " + type +
              "[5] input\ntensor %y: " + type +
              "[5] output\ninputs (%a, %d)\noutputs (%y)\n"
              "reduction y [i:5; k:7] " +
              kind + "\n  %y = mul(%a[i, k], %d[i])\n");
    CHECK(!rewritten(pattern, {{"defer-division", 0}}));
  }
}

TEST_CASE("a map that others need too stays beside the sum it was written into") {
  ExprProgram pattern = parse(R"(expr both
tensor %e: f32[6,9] input
tensor %l: f32[6] input
tensor %v: f32[9,4] input
tensor %p: f32[6,9] output
tensor %o: f32[6,4] output
inputs (%e, %l, %v)
outputs (%p, %o)
map p [s:6, t:9]
  %p = div(%e[s, t], %l[s])
reduction o [s:6, d:4; t:9] sum f32
  %o = mul(%p[s, t], %v[t, d])
)");
  CHECK(!rewritten(pattern, {{"defer-division", 0}})); // %p is made in any case
}

TEST_CASE("every monoid in two phases, with parts that divide the axis and without") {
  std::mt19937 random(2);
  for (const char *kind : {"sum f32", "prod f32", "max f32", "min f32", "sum i32", "and i32",
                           "or i32", "xor i32", "max i32", "argmax f32", "argmin f32",
                           "argmaxlast f32", "argminlast f32", "argmax i32", "argminlast i32"})
    for (int64_t length : {20000, 20011}) {
      INFO(kind << " over " << length);
      const std::string text = kind, type = text.substr(text.size() - 3);
      const bool arg = text.rfind("arg", 0) == 0;
      ExprProgram pattern =
          parse("expr long\ntensor %x: " + type + "[3," + std::to_string(length) +
                "] input\ntensor %y: " + type + "[3] output\n" +
                (arg ? "tensor %at: i64[3] output\n" : "") + "inputs (%x)\noutputs (%y" +
                (arg ? ", %at" : "") + ")\nreduction y [i:3; k:" + std::to_string(length) + "] " +
                kind + "\n  %y = %x[i, k]\n" + (arg ? "  %at = k\n" : ""));
      ExprProgram made = apply(pattern, {"two-phase", 16});
      REQUIRE(made.items.size() == 2);
      CHECK(equation(made, 0).axes[1].extent == DimExpr(16));
      std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
      if (text == "prod f32")
        for (int64_t i = 0; i < inputs[0].numElements(); ++i)
          inputs[0].setNumber(i, i % 977 == 5 ? (i % 2 ? 2 : 0.5) : i % 31 ? 1 : -1);
      CHECK(sameBits(run(made, inputs), run(pattern, inputs))); // halves: every sum is exact
      if (!arg && type != "f32")
        continue;
      // Nothing but what the neutral element is, and NaN.
      for (double fill : {-HUGE_VAL, HUGE_VAL, std::nan("")}) {
        if (type != "f32" || text == "prod f32")
          continue;
        for (int64_t i = 0; i < inputs[0].numElements(); ++i)
          inputs[0].setNumber(i, i < length || std::isnan(fill) ? fill : 1);
        CHECK(sameBits(run(made, inputs), run(pattern, inputs)));
      }
    }
}

TEST_CASE("places that the axis alone does not name stay whole where parts are cut") {
  auto placesOf = [](int64_t length) { // behind any that stands for an element behind the end
    const std::string n = std::to_string(length);
    return parse("expr far\ntensor %x: f32[" + n +
                 "] input\ntensor %y: f32[] output\n"
                 "tensor %at: i64[] output\ninputs (%x)\noutputs (%y, %at)\nreduction y [; k:" +
                 n + "] argmax f32\n  %y = %x[k]\n  %at = k + 30000\n");
  };
  CHECK(!rewritten(placesOf(20011), {{"two-phase", 16}}));
  const ExprProgram whole = placesOf(20000), made = apply(whole, {"two-phase", 16});
  std::mt19937 random(5);
  std::vector<TensorValue> inputs = randomInputs(whole, {}, random);
  CHECK(sameBits(run(made, inputs), run(whole, inputs)));
}

TEST_CASE("a product of matrices with few tiles in parts, unless something else is long") {
  std::mt19937 random(3);
  for (const char *length : {"2048", "2000"}) {
    const std::string k = length;
    const std::string head = "expr product\ntensor %a: f32[8," + k + "] input\ntensor %b: f32[" +
                             k + ",192] input\n",
                      product = "reduction s [m:8, n:192; k:" + k +
                                "] sum f32\n  %s = mul(%a[m, k], %b[k, n])\n";
    const ExprProgram alone = parse(head +
                                    "tensor %s: f32[8,192] output\ninputs (%a, %b)\noutputs "
                                    "(%s)\n" +
                                    product);
    const ExprProgram made = apply(alone, {"two-phase", 8});
    REQUIRE(made.items.size() == 2);
    const Equation &parts = std::get<Equation>(made.items[0].value);
    CHECK(parts.axes[0].extent == DimExpr(8)); // the outermost
    CHECK(parts.numSpatial == 3);
    const std::vector<TensorValue> inputs = roughInputs(alone, random);
    CHECK(close(run(made, inputs), run(alone, inputs), 1e-5));
    for (const char *target : {"sm_90", "gfx90a", "x86-64-v3"}) {
      const Target on = *lookupTarget(target);
      CHECK(twoPhaseChoices(alone, on).empty() == (on.kind == TargetKind::Cpu));
    }
    const ExprProgram beside =
        parse(head +
              "tensor %s: f32[8,192] output\ntensor %x: f32[90000] input\ntensor %l: f32[] "
              "output\ninputs (%a, %b, %x)\noutputs (%s, %l)\n" +
              product + "reduction l [; i:90000] sum f32\n  %l = %x[i]\n");
    const ExprProgram other = apply(beside, {"two-phase", 8});
    CHECK(other.items.size() == 3);
  }
}

TEST_CASE("a softmax over one long row in two phases") {
  ExprProgram pattern = parse(R"(expr softmax
symbol n = 1..100000 opt 50000 divisor 1
tensor %x: f32[n] input
tensor %m: f32[] temp
tensor %e: f32[n] temp
tensor %s: f32[] temp
tensor %y: f32[n] output
inputs (%x)
outputs (%y)
reduction m [; k:n] max f32
  %m = %x[k]
map e [i:n]
  %e = exp(sub(%x[i], %m[]))
reduction s [; k:n] sum f32
  %s = %e[k]
map y [i:n]
  %y = div(%e[i], %s[])
)");
  ExprProgram made = apply(pattern, {"two-phase", 64});
  CHECK(made.items.size() == 6);
  std::mt19937 random(3);
  for (int64_t n : {1, 63, 64, 65, 4096, 5000}) { // fewer elements than parts, too
    std::vector<TensorValue> inputs = randomInputs(pattern, {n}, random);
    CHECK(close(run(made, inputs), run(pattern, inputs), 1e-5));
  }
}

TEST_CASE("sums of products stay sums of products when the parts are cut") {
  ExprProgram pattern = parse(R"(expr product
tensor %a: f32[2,30011] input
tensor %b: f32[30011,3] input
tensor %y: f32[2,3] output
inputs (%a, %b)
outputs (%y)
reduction y [i:2, j:3; k:30011] sum f32
  %y = mul(%a[i, k], %b[k, j])
)");
  ExprProgram made = apply(pattern, {"two-phase", 32});
  const Equation &part = equation(made, 0);
  CHECK(part.body[part.results[0]].op == ScalarOp::Mul);
  std::mt19937 random(4);
  std::vector<TensorValue> inputs = roughInputs(pattern, random);
  CHECK(close(run(made, inputs), run(pattern, inputs), 1e-5));
}

TEST_CASE("only long reductions with few results are taken apart") {
  auto choices = [](const std::string &axes, const std::string &shape, const char *target) {
    ExprProgram pattern = parse("expr short\ntensor %x: f32[" + shape + "] input\ntensor %y: f32[" +
                                shape.substr(0, shape.find(',')) +
                                "] output\ninputs (%x)\noutputs (%y)\nreduction y " + axes +
                                " sum f32\n  %y = %x[i, k]\n");
    for (const Alternative &a : alternatives())
      if (a.name == "two-phase")
        return a.choices(pattern, *lookupTarget(target));
    return std::vector<int64_t>{-1};
  };
  CHECK(choices("[i:1; k:10000000]", "1,10000000", "x86-64-v3") == std::vector<int64_t>{2, 8});
  CHECK(choices("[i:1; k:10000000]", "1,10000000", "sm_80") == std::vector<int64_t>{100, 500});
  CHECK(choices("[i:1; k:1000]", "1,1000", "sm_80").empty());           // less than a launch
  CHECK(choices("[i:4096; k:4096]", "4096,4096", "sm_80").empty());     // rows for every core
  CHECK(choices("[i:8; k:1000000]", "8,1000000", "x86-64-v3").empty()); // and here
}

TEST_CASE("windows along several axes along one after the other") {
  std::mt19937 random(5);
  const auto window = [](const std::string &kind, const std::string &identity) {
    return parse(
        "expr window\ntensor %x: " + kind.substr(kind.size() - 3) +
        "[2,9,11] input\ntensor %y: " + kind.substr(kind.size() - 3) +
        "[2,9,11] output\ninputs (%x)\noutputs (%y)\n"
        "reduction y [c:2, i:9, j:11; r:4, q:5] " +
        kind +
        "\n  %y = if(and(and(and(lt(0, i + r), lt(i + r, 10)), lt(1, j + q)), lt(j + q, 13)), "
        "%x[c, i + r - 1, j + q - 2], " +
        identity + ")\n");
  };
  for (const auto &[kind, identity] :
       {std::pair{"sum f32", "0.0"}, {"max f32", "-inf"}, {"min f32", "inf"}, {"sum i32", "0"}}) {
    INFO(kind);
    const ExprProgram pattern = window(kind, identity);
    const ExprProgram made = apply(pattern, {"separate-windows", 0});
    REQUIRE(made.items.size() == 2);
    CHECK(equation(made, 0).axes.size() == 4);
    CHECK(equation(made, 1).axes.back().extent == DimExpr(5));
    const std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
    CHECK(sameBits(run(made, inputs), run(pattern, inputs))); // halves: every sum is exact
  }
  // What lies outside counts.
  CHECK(!rewritten(window("max f32", "0.0"), {{"separate-windows", 0}}));

  // Along three axes, two elements apart in one of them; no padding.
  const ExprProgram boxes = parse(R"(expr boxes
tensor %x: f16[7,6,13] input
tensor %y: f16[4,3,5] output
inputs (%x)
outputs (%y)
reduction y [a:4, i:3, j:5; p:4, r:4, q:5] max f32
  %y = cast(f32, %x[a + p, i + r, j*2 + q])
)");
  const ExprProgram made = apply(boxes, {"separate-windows", 0});
  CHECK(made.items.size() == 3);
  const std::vector<TensorValue> inputs = randomInputs(boxes, {}, random);
  CHECK(sameBits(run(made, inputs), run(boxes, inputs)));
}

TEST_CASE("windows that save no terms apart, or are none, stay") {
  for (const char *text :
       {"[i:9, j:9; r:3, q:3] max f32\n  %y = %x[i + r, j + q]\n",      // a line costs as much
        "[i:3, j:3; r:4, q:4] max f32\n  %y = %x[i*4 + r, j*4 + q]\n",  // no element is read twice
        "[i:9, j:9; r:5, q:5] max f32\n  %y = %x[i + r, j + r + q]\n",  // along the diagonal
        "[i:9, j:9; r:5, q:5] max f32\n  %y = neg(%x[i + r, j + q])\n", // computed before it counts
        "[i:9, j:9; r:5, q:5] max f32\n  %y = if(lt(i + j + q, 20), %x[i + r, j + q], -inf)\n"}) {
    INFO(text);
    const std::string extent = text[3] == '3' ? "3" : "9";
    CHECK(
        !rewritten(parse("expr window\ntensor %x: f32[20,20] input\ntensor %y: f32[" + extent +
                         "," + extent + "] output\ninputs (%x)\noutputs (%y)\nreduction y " + text),
                   {{"separate-windows", 0}}));
  }
}

TEST_CASE("alternatives that do not exist do not apply") {
  ExprProgram pattern = parse("expr one\ntensor %a: f32[5] input\ntensor %y: f32[5] output\n"
                              "inputs (%a)\noutputs (%y)\nmap y [i:5]\n  %y = neg(%a[i])\n");
  CHECK(!rewritten(pattern, {{"no-such", 0}}));
  CHECK(rewritten(pattern, {})->items.size() == 1);
  CHECK(applicableAlternatives(pattern, *lookupTarget("sm_80")).empty());
}

TEST_CASE("a map is computed again by those who read it, to the last bit") {
  std::mt19937 random(4);
  const std::string head = R"(expr softmax
tensor %x: f32[6,40] input
tensor %m: f32[6] input
tensor %y: f32[6,42] output
tensor %e: f32[6,40] temp
tensor %s: f32[6] temp
inputs (%x, %m)
outputs (%y)
map e0 [i:6, j:40]
  %e = exp(sub(%x[i, j], %m[i]))
reduction e1 [i:6; k:40] sum f32
  %s = %e[i, k]
map e2 [i:6, j:42]
)";
  // Behind padding too: the copy's own reads are guarded.
  ExprProgram pattern =
      parse(head + "  %y = div(if(and(le(1, j), le(j, 40)), %e[i, j - 1], 0.0), %s[i])\n");
  ExprProgram made = apply(pattern, {"recompute", 1});
  REQUIRE(made.items.size() == 2);
  CHECK(body(made, 0) == "%s = exp(sub(%x[i, k], %m[i]))");
  std::vector<TensorValue> inputs = roughInputs(pattern, random);
  CHECK(close(run(made, inputs), run(pattern, inputs), 0));
  // A reduction is no map, e2 is an output, and there is no fourth equation.
  for (int64_t choice : {0, 2, 3, 4})
    CHECK(!rewritten(pattern, {{"recompute", choice}}));
}

TEST_CASE("equations that differ in their operands are one, to the last bit") {
  std::mt19937 random(6);
  auto check = [&](const std::string &text, size_t equations) {
    INFO(text);
    ExprProgram pattern = parse(text);
    ExprProgram made = apply(pattern, {"concatenate", 0});
    INFO(print(made, nullptr));
    CHECK(made.items.size() == equations);
    std::vector<TensorValue> inputs = roughInputs(pattern, random);
    CHECK(sameBits(run(made, inputs), run(pattern, inputs)));
  };
  // Experts of one input, whose maps follow; another equation stands between and needs the first.
  check(R"(expr experts
tensor %x: f32[9] input
tensor %w0: f32[9,5] input
tensor %w1: f32[9,7] input
tensor %b0: f32[5] input
tensor %b1: f32[7] input
tensor %s: f32[] output
tensor %y: f32[12] output
tensor %e0: f32[5] temp
tensor %e1: f32[7] temp
tensor %r0: f32[5] temp
tensor %r1: f32[7] temp
inputs (%x, %w0, %w1, %b0, %b1)
outputs (%s, %y)
reduction e0 [j:5; k:9] sum f32
  %e0 = mul(%x[k], %w0[k, j])
map r0 [j:5]
  %r0 = max(add(%e0[j], %b0[j]), 1.0)
reduction s [; j:5] sum f32
  %s = %r0[j]
reduction e1 [j:7; k:9] sum f32
  %e1 = mul(%x[k], %w1[k, j])
map r1 [j:7]
  %r1 = max(add(%e1[j], %b1[j]), 2.0)
map y [j:12]
  %y = if(lt(j, 5), %r0[j], if(lt(4, j), %r1[j - 5], 0.0))
)",
        4); // the sum needs a part of what %y is
  // Padding of their own, along either axis; the place on the axis is a value.
  check(R"(expr padded
tensor %a: f32[4,6] input
tensor %b: f32[4,6] input
tensor %c: f32[4,6] output
tensor %d: f32[4,6] output
inputs (%a, %b)
outputs (%c, %d)
map c [i:4, j:6]
  %c = add(if(le(1, j), %a[i, j - 1], 2.0), cast(f32, i))
map d [i:4, j:6]
  %d = add(if(lt(j, 5), %b[i, j + 1], 3.0), cast(f32, i))
)",
        3);
  // Three windows of unequal length under a common monoid.
  check(R"(expr windows
tensor %a: f32[3,10] input
tensor %b: f32[3,12] input
tensor %u: f32[3,8] output
tensor %v: f32[3,10] output
tensor %w: f32[3,7] output
inputs (%a, %b)
outputs (%u, %v, %w)
reduction u [i:3, j:8; k:3] max f32
  %u = %a[i, j + k]
reduction v [i:3, j:10; k:3] max f32
  %v = %b[i, j + k]
reduction w [i:3, j:7; k:3] max f32
  %w = %b[i, j + k]
)",
        4);
}

TEST_CASE("equations that need each other, or compute something else, stay apart") {
  auto applies = [](const std::string &second) {
    ExprProgram pattern = parse(R"(expr two
tensor %a: f32[6] input
tensor %b: f32[4,6] input
tensor %u: f32[4] output
tensor %v: f32[4] output
inputs (%a, %b)
outputs (%u, %v)
reduction u [i:4; k:6] sum f32
  %u = mul(%b[i, k], %a[k])
)" + second);
    return rewritten(pattern, {{"concatenate", 0}}).has_value();
  };
  CHECK(applies("reduction v [i:4; k:6] sum f32\n  %v = mul(%b[floormod(i, 2), k], %a[k])\n"));
  CHECK(!applies("reduction v [i:4; k:6] max f32\n  %v = mul(%b[floormod(i, 2), k], %a[k])\n"));
  CHECK(!applies("reduction v [i:4; k:5] sum f32\n  %v = mul(%b[floormod(i, 2), k], %a[k])\n"));
  CHECK(!applies("reduction v [i:4; k:6] sum f32\n  %v = add(%b[floormod(i, 2), k], %a[k])\n"));
  CHECK(!applies("reduction v [i:4; k:6] sum f32\n  %v = mul(%b[i, k], %u[i])\n"));
  CHECK(!applies("map v [i:4]\n  %v = mul(%b[i, 1], %a[2])\n"));
}

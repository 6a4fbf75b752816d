// The Expr interpreter: rounding and order of float sums, scans, scatters, control flow, errors, packed weights.
#include "Reference/ExprInterpreter.h"
#include "../ParseProgram.h"
#include "Reference/ExprFold.h"

#include <cmath>

using namespace fusec;
using test::parse;

namespace {

TensorValue floats(DType type, std::vector<int64_t> dims, std::vector<double> values) {
  TensorValue t(type, std::move(dims));
  t.floats = std::move(values);
  return t;
}
TensorValue ints(DType type, std::vector<int64_t> dims, std::vector<int64_t> values) {
  TensorValue t(type, std::move(dims));
  t.ints = std::move(values);
  return t;
}
std::vector<TensorValue> run(const std::string &text, const std::vector<TensorValue> &inputs,
                             bool inDouble = false) {
  ExprInterpreterOptions options;
  options.floatsInDouble = inDouble;
  auto r = evaluate(parse(text), inputs, options);
  if (!r.ok())
    FAIL(format(r.errors().front()));
  return *r;
}

} // namespace

TEST_CASE("sums round in the declared type and order") {
  const char *sum = R"(expr sum
tensor %x: f32[3] input
tensor %y: f32[] output
inputs (%x)
outputs (%y)
reduction s [; i:3] sum f32
  %y = %x[i]
)";
  auto x = floats(DType::F32, {3}, {1, 16777216, -16777216});
  CHECK(run(sum, {x})[0].floats[0] == 0); // 1 + 2^24 rounds to 2^24
  CHECK(run(sum, {x}, true)[0].floats[0] == 1);

  const char *dot = R"(expr dot
tensor %x: f32[2] input
tensor %z: f32[2] input
tensor %y: f32[] output
inputs (%x, %z)
outputs (%y)
reduction s [; i:2] sum f32
  %y = mul(%x[i], %z[i])
)";
  // -1 + (1 + 2^-12)^2 = 2^-11 + 2^-24 needs the whole product; rounded before the sum it loses 2^-24.
  auto a = floats(DType::F32, {2}, {1, 1 + 0x1p-12}),
       b = floats(DType::F32, {2}, {-1, 1 + 0x1p-12});
  CHECK(run(dot, {a, b})[0].floats[0] == 0x1p-11 + 0x1p-24);
}

TEST_CASE("an empty reduction gives the neutral element, argmax the first of equals") {
  auto y = run(R"(expr empty
symbol n = 0..8 opt 4 divisor 1
tensor %x: f32[n,2] input
tensor %y: f32[2] output
inputs (%x)
outputs (%y)
reduction m [j:2; i:n] max f32
  %y = %x[i, j]
)",
               {floats(DType::F32, {0, 2}, {})});
  CHECK(y[0].floats[0] == -HUGE_VAL);
  const char *arg = R"(expr arg
tensor %x: f32[4] input
tensor %v: f32[] output
tensor %i: i64[] output
inputs (%x)
outputs (%v, %i)
reduction m [; k:4] argmax f32
  %v = %x[k]
  %i = k
)";
  CHECK(run(arg, {floats(DType::F32, {4}, {1, 7, 7, 2})})[1].ints[0] == 1);
  CHECK(run(arg, {floats(DType::F32, {4}, {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL})})[1]
            .ints[0] == 0);
  CHECK(run(arg, {floats(DType::F32, {4}, {1, NAN, 7, NAN})})[1].ints[0] == 1);
}

TEST_CASE("scatters add duplicates in order, over a base") {
  auto y = run(R"(expr scatter
tensor %x: f32[3] input
tensor %ids: i64[3] input
tensor %b: f32[4] input
tensor %y: f32[4] output
inputs (%x, %ids, %b)
outputs (%y)
scatter s [i:3] add base %b
  %y[%ids[i]] = %x[i] where lt(%ids[i], 3)
)",
               {floats(DType::F32, {3}, {1, 2, 4}), ints(DType::I64, {3}, {1, 1, 3}),
                floats(DType::F32, {4}, {10, 20, 30, 40})});
  CHECK(y[0].floats == std::vector<double>{10, 23, 30, 40});
}

TEST_CASE("a reversed scan stacks its outputs where they belong") {
  auto y = run(R"(expr scan
tensor %x: f32[3] input
tensor %h0: f32[] input
tensor %h: f32[] temp
tensor %n: f32[] temp
tensor %hs: f32[3] output
tensor %last: f32[] output
inputs (%x, %h0)
outputs (%hs, %last)
scan s steps(3) reversed
  carry %h = %h0 next %n final %last
  stack %n -> %hs
  map cell []
    %n = add(mul(%h[], 10.0), %x[step])
end
)",
               {floats(DType::F32, {3}, {1, 2, 3}), floats(DType::F32, {}, {0})});
  CHECK(y[0].floats == std::vector<double>{321, 32, 3});
  CHECK(y[1].floats[0] == 321);
}

TEST_CASE("branches and loops") {
  const char *text = R"(expr control
tensor %c: bool[] input
tensor %x: f32[2] input
tensor %a: f32[2] temp
tensor %b: f32[2] temp
tensor %r: f32[2] temp
tensor %it: i64[] temp
tensor %in: f32[2] temp
tensor %next: f32[2] temp
tensor %more: bool[] temp
tensor %y: f32[2] output
inputs (%c, %x)
outputs (%y)
if branch %c
  map a [i:2]
    %a = neg(%x[i])
  yield (%a)
else
  map b [i:2]
    %b = %x[i]
  yield (%b)
end -> (%r)
loop repeat iteration %it next %more
  carry %in = %r next %next final %y
  map next [i:2]
    %next = mul(%in[i], 2.0)
  map more []
    %more = lt(%it[], 2)
end
)";
  auto x = floats(DType::F32, {2}, {1, 3});
  CHECK(run(text, {ints(DType::Bool, {}, {1}), x})[0].floats == std::vector<double>{-8, -24});
  CHECK(run(text, {ints(DType::Bool, {}, {0}), x})[0].floats == std::vector<double>{8, 24});
}

TEST_CASE("a read outside its tensor is an error") {
  auto p = parse(R"(expr outside
tensor %ids: i64[2] input
tensor %x: f32[4] input
tensor %y: f32[2] output
inputs (%ids, %x)
outputs (%y)
map g [i:2]
  %y = %x[%ids[i]]
)");
  auto r = evaluate(p, {ints(DType::I64, {2}, {3, 4}), floats(DType::F32, {4}, {0, 1, 2, 3})});
  REQUIRE(!r.ok());
  CHECK(r.errors().front().text == "reads outside %x");
  CHECK(r.errors().front().where == "expr outside: g");
}

TEST_CASE("weights come into a kernel's layout, padding included") {
  auto p = parse(R"(expr pack
tensor %w: f32[3,5] constant {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0}
inputs ()
outputs ()
)");
  Body body;
  body.axisRanges = {rangeOfExtent(2, {}), rangeOfExtent(3, {}), rangeOfExtent(2, {})};
  std::vector<float> out(12);
  auto *bytes = reinterpret_cast<uint8_t *>(out.data());
  // Panels of two columns: [panel, k, lane] reads w[k, panel*2 + lane]; the first four columns need no guard.
  NodeId column = body.binary(
      ScalarOp::Add, body.binary(ScalarOp::Mul, body.axis(0), body.index(2)), body.axis(2));
  NodeId plain = body.read(0, DType::F32, {body.axis(1), column});
  REQUIRE(evaluateBox(body, plain, p, {2, 3, 2}, bytes).ok());
  CHECK(out == std::vector<float>{0, 1, 5, 6, 10, 11, 2, 3, 7, 8, 12, 13});
  // The last panel has one column of padding.
  NodeId last = body.binary(ScalarOp::Add, column, body.index(2));
  NodeId guarded = body.readIf(0, DType::F32, body.binary(ScalarOp::Lt, last, body.index(5)),
                               body.constant(DType::F32, 0), {body.axis(1), last});
  REQUIRE(evaluateBox(body, guarded, p, {2, 3, 2}, bytes).ok());
  CHECK(out == std::vector<float>{2, 3, 7, 8, 12, 13, 4, 0, 9, 0, 14, 0});
}

TEST_CASE("what constants alone decide is computed before the program runs") {
  auto p = parse(R"(expr fold
tensor %x: f32[2] input
tensor %q: i8[2,2] constant {1, 2, 3, 4}
tensor %scale: f32[2] constant {0.5, 2.0}
tensor %turned: i8[2,2] temp
tensor %w: f32[2,2] temp
tensor %view: f32[2,2] temp
tensor %y: f32[2] output
inputs (%x)
outputs (%y)
map turned [i:2, j:2]
  %turned = %q[j, i]
map w [i:2, j:2]
  %w = mul(cast(f32, %turned[i, j]), %scale[j])
map view [i:2, j:2]
  %view = %w[j, i]
reduction y [j:2; i:2] sum f32
  %y = mul(%x[i], %view[i, j])
)");
  ExprProgram folded = foldConstants(p);
  REQUIRE(verify(folded).ok());
  REQUIRE(folded.items.size() == 2); // the view stays: compose writes it into the sum
  std::string text = print(folded, nullptr);
  CHECK(text.find("%w: f32[2,2] constant {0.5, 6.0, 1.0, 8.0}") != std::string::npos);
  auto x = floats(DType::F32, {2}, {1, 10});
  CHECK(evaluate(folded, {x})->at(0).floats == evaluate(p, {x})->at(0).floats);
}

TEST_CASE("filters that are regrouped are constants, since no reader could pack what takes indices "
          "apart") {
  auto p = parse(R"(expr fold
tensor %x: f32[2] input
tensor %w: f32[2,2,2] constant {1, 2, 3, 4, 5, 6, 7, 8}
tensor %apart: f32[2,2,2] temp
tensor %joined: f32[4,2] temp
tensor %y: f32[4] output
inputs (%x)
outputs (%y)
map apart [i:2, j:2, k:2]
  %apart = %w[k, i, j*-1 + 1]
map joined [i:4, k:2]
  %joined = %apart[floordiv(i, 2), floormod(i, 2), k]
reduction y [i:4; k:2] sum f32
  %y = mul(%x[k], %joined[i, k])
)");
  ExprProgram folded = foldConstants(p);
  REQUIRE(verify(folded).ok());
  REQUIRE(folded.items.size() == 1);
  CHECK(print(folded, nullptr)
            .find("%joined: f32[4,2] constant {2.0, 6.0, 1.0, 5.0, 4.0, 8.0, 3.0, 7.0}") !=
        std::string::npos);
  auto x = floats(DType::F32, {2}, {1, 10});
  CHECK(evaluate(folded, {x})->at(0).floats == evaluate(p, {x})->at(0).floats);
}

TEST_CASE("the order of constants is known before the program runs") {
  auto p = parse(R"(expr fold
tensor %x: f32[2,3] input
tensor %c: f32[2,4] constant {nan, 2.0, 5.0, 5.0, -0.0, 0.0, -1.0, inf}
tensor %v: f32[2,3] temp
tensor %i: i64[2,3] temp
tensor %y: f32[2,3] output
inputs (%x)
outputs (%y)
opaque top [r:2, p:3; j:4] topk {largest = 0} (%c) -> (%v, %i)
map y [r:2, p:3]
  %y = add(mul(%x[r, p], %v[r, p]), cast(f32, %i[r, p]))
)");
  ExprProgram folded = foldConstants(p);
  REQUIRE(verify(folded).ok());
  REQUIRE(folded.items.size() == 1);
  std::string text = print(folded, nullptr);
  CHECK(text.find("%v: f32[2,3] constant {2.0, 5.0, 5.0, -1.0, -0.0, 0.0}") != std::string::npos);
  CHECK(text.find("%i: i64[2,3] constant {1, 2, 3, 2, 0, 1}") != std::string::npos);
  auto x = floats(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(evaluate(folded, {x})->at(0).floats == evaluate(p, {x})->at(0).floats);
}

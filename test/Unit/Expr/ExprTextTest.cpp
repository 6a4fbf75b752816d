// Every construct prints, parses and prints the same again; the verifier names what is wrong.
#include "Expr/Expr.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;

namespace {

std::string everything() {
  std::string text = R"(expr everything
symbol n = 1..64 opt 8 divisor 1
symbol "odd name" = 1..9223372036854775807 opt 1 divisor 4
tensor %x: f32[n,768] input
tensor %w: f32[768,4] constant digest "DIGEST"
tensor %bias: f32[4] constant {0.0, -0.0, inf, 0.1}
tensor %ids: i64[n] input
tensor %cond: bool[] input
tensor %c: f32[n,4] temp
tensor %y: f32[n,4] output
tensor %best: f32[n] temp
tensor %where: i64[n] output
tensor %base: f32[n,4] temp
tensor %out: f32[n,4] output
tensor %h0: f32[4] temp
tensor %h: f32[4] temp
tensor %hn: f32[4] temp
tensor %o: f32[4] temp
tensor %hs: f32[n,4] output
tensor %hl: f32[4] output
tensor %v: f32[n,2] temp
tensor %i: i64[n,2] temp
tensor %a: f32[4] temp
tensor %b: f32[4] temp
tensor %r: f32[4] output
tensor %it: i64[] temp
tensor %carried: f32[4] temp
tensor %carriedOut: f32[4] temp
tensor %more: bool[] temp
tensor %last: f32[4] output
tensor %"half name": f16[n*2 + 1] temp
inputs (%x, %ids, %cond)
outputs (%y, %where, %out, %hs, %hl, %r, %last)
reduction mm [i:n, j:4; k:768] sum f32 @"MatMul 1" @"Add_2"
  %c = mul(%x[i, k], %w[k, j])
map gelu [i:n, j:4]
  let t0 = add(%c[i, j], %bias[j]);
  let t1 = mul(t0, sigmoid(t0));
  %y = select(isnan(t1), 0.5, add(t1, if(lt(0, i), %c[i - 1, j], -0.0)))
map half [i:n*2 + 1]
  %"half name" = cast(f16, %x[floordiv(i, 2)*dim(n) + i*3 - 7, floormod(i + 1, 768)])
reduction arg [i:n; k:4] argmax f32
  %best = %y[i, k]
  %where = k
map base [i:n, j:4]
  %base = cast(f32, floordiv(i, cast(i64, lt(i32 3, cast(i32, j)))))
scatter s [i:n, j:4] add base %base
  %out[%ids[i], j] = %y[i, j] where and(lt(i, 3), true)
map h0 [j:4]
  %h0 = %x[0, j]
scan rnn steps(n) reversed @"LSTM"
  carry %h = %h0 next %hn final %hl
  stack %o -> %hs
  map cell [j:4]
    %hn = tanh(add(%h[j], %x[step, j]))
  map copy [j:4]
    %o = %hn[j]
end
opaque top [i:n, k:2; j:4] topk {largest = 1} (%y) -> (%v, %i) @"topk"
if branch %cond @"If_1"
  map a [j:4]
    %a = %v[0, 0]
  yield (%a)
else
  map b [j:4]
    %b = %h0[j]
  yield (%b)
end -> (%r)
loop repeat condition %cond iteration %it next %more @"Loop_1"
  carry %carried = %h0 next %carriedOut final %last
  map body [j:4]
    %carriedOut = add(%carried[j], cast(f32, %it[]))
  map more []
    %more = lt(%it[], 5)
end
)";
  text.replace(text.find("DIGEST"), 6, "00000000000000000000000000000000");
  return text;
}

} // namespace

TEST_CASE("every construct survives the round trip through text") {
  ConstantStore store;
  auto weights = makeConstant(DType::F32, {768, 4}, std::vector<uint8_t>(768 * 4 * 4, 1));
  REQUIRE(store.put(weights).ok());
  std::string text = everything();
  std::string zero(32, '0');
  text.replace(text.find(zero), 32, weights->digest.hex());
  auto program = parseExpr(text, "t", store);
  if (!program.ok())
    FAIL(format(program.errors().front()));
  CHECK(print(*program, &store) == text);
  auto status = verify(*program);
  if (!status.ok())
    FAIL(format(status.errors().front()));

  // Renumbering bodies in text order changes nothing that was read from text.
  auto &mm = std::get<Equation>(program->items[1].value);
  std::vector<Scalar> before = mm.body.nodes;
  compact(mm);
  CHECK(mm.body.nodes == before);
}

TEST_CASE("canonical text knows no names") {
  ConstantStore store;
  auto program = [&](const std::string &a, const std::string &i, const std::string &n) {
    auto p = parseExpr("expr p\nsymbol " + n + " = 1..9 opt 1 divisor 1\ntensor %" + a + ": f32[" +
                           n + "] input\ntensor %z: f32[" + n + "] output\ninputs (%" + a +
                           ")\noutputs (%z)\nmap m_" + a + " [" + i + ":" + n + "] @\"" + a +
                           "\"\n  %z = exp(%" + a + "[" + i + "])\n",
                       "t", store);
    REQUIRE(p.ok());
    return canonicalText(std::get<Equation>(p->items[0].value), *p);
  };
  CHECK(program("x", "i", "n") == program("data", "row", "batch"));
}

TEST_CASE("the verifier rejects what breaks a rule") {
  ConstantStore store;
  auto message = [&](const std::string &rest) {
    auto p = parseExpr(
        "expr p\ntensor %x: f32[4] input\ntensor %t: f32[4] temp\ntensor %y: f32[4] output\n"
        "tensor %u: f32[4] temp\ninputs (%x)\noutputs (%y)\n" +
            rest,
        "t", store);
    if (!p.ok())
      return p.errors().front().text;
    auto status = verify(*p);
    return status.ok() ? std::string() : status.errors().front().text;
  };
  CHECK(message("map m [i:4]\n %y = %x[i]\n") == "");
  CHECK(message("map m [i:3]\n %y = %x[i]\n") == "axis i is 3 long, dimension 0 of %y 4");
  CHECK(message("reduction m [i:4; r:-9223372036854775808] sum f32\n %y = %x[i]\n") ==
        "axis r is -9223372036854775808 long");
  CHECK(message("map m [i:4]\n %y = %t[i]\n") == "reads %t before it is written");
  CHECK(message("map m [i:4]\n %y = %x[i, i]\n") == "reads %x with a wrong number of indices");
  CHECK(message("map m [i:4]\n %y = add(%x[i], i)\n") == "operands of add are f32 and i64");
  CHECK(message("map m [i:4]\n %y = lt(%x[i], 0)\n") == "the value for %y is bool, not f32");
  CHECK(message("map m [step:4]\n %y = %x[0]\n") ==
        "axis names are distinct identifiers and no keywords: 'step'");
  CHECK(message("map m [i:4]\n %y = %x[q]\n") == "'q' is neither an axis nor bound by let");
  for (const char *inner : {"%t", "%u"}) // steps past the last one would have others
    CHECK(message(std::string("scan s steps(2)\n carry %t = %x next %u\n map n [i:4]\n"
                              "  %u = exp(%t[i])\nend\nmap m [i:4]\n %y = ") +
                  inner + "[i]\n") ==
          std::string("reads ") + inner + ", which only the steps of its scan have");
  CHECK(message("") == "an output that no equation writes");
}

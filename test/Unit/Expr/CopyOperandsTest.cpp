// Operands that lanes would gather, copied into the lanes' order in front of the reader.
#include "Expr/Alternatives.h"
#include "ProgramTools.h"

using namespace fusec;
using namespace fusec::test;

namespace {

std::optional<ExprProgram> copied(const std::string &text) {
  return rewritten(parse(text), {{"copy-operands", 0}});
}

/// A window over an image [n, y, x, c] whose result lies as [n, c, y, x]; `read` is its term.
std::string window(const std::string &read) {
  return R"(expr window
tensor %x: f32[2,5,6,7] input
tensor %y: f32[2,7,5,6] output
inputs (%x)
outputs (%y)
reduction y [n:2, c:7, i:5, j:6; r:3, s:3] max f32
  %y = )" +
         read + "\n";
}

} // namespace

TEST_CASE("what lanes would gather is copied in front, to the last bit") {
  // With padding: the reads stay guarded, the copy is of what is there.
  const std::string text = window(
      "if(and(and(le(1, i + r), lt(i + r, 6)), and(le(1, j + s), lt(j + s, 7))), %x[n, i + r "
      "- 1, j + s - 1, c], -100.0)");
  const ExprProgram pattern = parse(text);
  const std::optional<ExprProgram> made = copied(text);
  REQUIRE(made);
  requireValid(*made);
  REQUIRE(made->items.size() == 2);
  CHECK(body(*made, 0) == "%x.copy = %x[i0, i1, i2, i3]");
  CHECK(print(*made, nullptr).find("tensor %x.copy: f32[2,5,7,6] temp") != std::string::npos);
  CHECK(print(*made, nullptr).find("%x.copy[n, i + r - 1, c, j + s - 1]") != std::string::npos);
  std::mt19937 random(3);
  const std::vector<TensorValue> inputs = randomInputs(pattern, {}, random);
  CHECK(sameBits(run(*made, inputs), run(pattern, inputs)));
}

TEST_CASE("only what is used again and lies apart is copied") {
  // Side by side along the last axis; each element once; lanes two apart within their dimension; a constant.
  CHECK(!copied(R"(expr p
tensor %x: f32[7,7,8] input
tensor %y: f32[7,5,6] output
inputs (%x)
outputs (%y)
reduction y [c:7, i:5, j:6; r:3, s:3] max f32
  %y = %x[c, i + r, j + s]
)"));
  CHECK(!copied(R"(expr p
tensor %x: f32[5,6,7] input
tensor %y: f32[7,5] output
inputs (%x)
outputs (%y)
reduction y [c:7, i:5; s:6] sum f32
  %y = %x[i, s, c]
)"));
  CHECK(!copied(R"(expr p
tensor %x: f32[7,13,7] input
tensor %y: f32[7,3,6] output
inputs (%x)
outputs (%y)
reduction y [c:7, i:3, j:6; r:3, s:3] max f32
  %y = %x[i*2 + r, j*2 + s, c]
)"));
}

TEST_CASE("of a product's operands the one that lanes gather is copied") {
  const std::string text = R"(expr keys
symbol n = 1..64 opt 16 divisor 1
tensor %q: f32[n,32] input
tensor %k: f32[n,32] input
tensor %y: f32[2,n,n] output
inputs (%q, %k)
outputs (%y)
reduction y [h:2, i:n, j:n; d:16] sum f32
  %y = mul(%q[i, h*16 + d], %k[j, h*16 + d])
)";
  const ExprProgram pattern = parse(text);
  const std::optional<ExprProgram> made = copied(text);
  REQUIRE(made);
  requireValid(*made);
  CHECK(body(*made, 0) == "%k.copy = %k[i0, i1]");
  CHECK(body(*made, 1) == "%y = mul(%q[i, h*16 + d], %k.copy[h*16 + d, j])");
}

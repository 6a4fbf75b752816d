// Scans step by step in one block, or all blocks together: every schedule gives what the equations say.
#include "Candidates.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("candidates: scans") {
  for (const char *direction : {"", " reversed"}) {
    std::string text = R"(expr rnn
tensor %x: f32[6,5,12] input
tensor %h0: f32[5,20] input
tensor %w: f32[20,20] input
tensor %u: f32[12,20] input
tensor %h: f32[5,20] temp
tensor %a: f32[5,20] temp
tensor %b: f32[5,20] temp
tensor %hn: f32[5,20] temp
tensor %o: f32[5,20] temp
tensor %hs: f32[6,5,20] output
tensor %hl: f32[5,20] output
inputs (%x, %h0, %w, %u)
outputs (%hl, %hs)
scan rnn steps(6)DIRECTION
  carry %h = %h0 next %hn final %hl
  stack %o -> %hs
  reduction a [i:5, j:20; k:20] sum f32
    %a = mul(%h[i, k], %w[k, j])
  reduction b [i:5, j:20; k:12] sum f32
    %b = mul(%x[step, i, k], %u[k, j])
  map hn [i:5, j:20]
    %hn = min(max(add(%a[i, j], %b[i, j]), -3.0), 3.0)
  map o [i:5, j:20]
    %o = %hn[i, j]
end
)";
    text.replace(text.find("DIRECTION"), 9, direction);
    check(text);
    INFO("constant weights" << direction);
    ExprProgram pattern = patternFrom(text);
    fix(pattern, "w");
    fix(pattern, "u");
    checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
  }
}

TEST_CASE("candidates: scans with a reduction that has nothing to reduce") {
  for (const char *size : {"40", "1"}) {
    std::string text = R"(expr arg
tensor %x: f32[6,N] input
tensor %h0: f32[N] input
tensor %h: f32[N] temp
tensor %v: f32[N] temp
tensor %i: i64[N] temp
tensor %hn: f32[N] temp
tensor %hl: f32[N] output
inputs (%x, %h0)
outputs (%hl)
scan arg steps(6)
  carry %h = %h0 next %hn final %hl
  reduction v [j:N; r:1] argmax f32
    %v = %x[step, j]
    %i = r
  map hn [j:N]
    %hn = add(mul(%h[j], 0.5), add(%v[j], cast(f32, %i[j])))
end
)";
    for (size_t at; (at = text.find('N')) != std::string::npos;)
      text.replace(at, 1, size);
    check(text);
  }
}

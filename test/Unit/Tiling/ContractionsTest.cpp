// Contractions: which equations are some, and that their candidates are right (as in CandidatesTest.cpp).
#include "Candidates.h"

#include <sstream>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("candidates: products of integers are contractions like those of floats") {
  for (const char *types :
       {"u8 i8 i32", "i8 i8 i32", "i64 i64 i64", "u32 u32 u32", "f64 f64 f64"}) {
    std::string a, b, c;
    std::istringstream(types) >> a >> b >> c;
    const std::string text = "expr p\ntensor %a: " + a + "[13,37] input\ntensor %b: " + b +
                             "[37,50] input\ntensor %z: " + a + "[] input\ntensor %y: " + c +
                             "[13,50] output\ninputs (%a, %b, %z)\noutputs (%y)\nreduction y "
                             "[i:13, j:50; k:37] sum " +
                             c + "\n  %y = mul(sub(cast(" + c + ", %a[i, k]), cast(" + c +
                             ", %z[])), cast(" + c + ", %b[k, j]))\n";
    check(text);
    for (const char *target : {"x86-64-v3", "x86-64-v4", "sm_80", "gfx90a"})
      CHECK(valueOf(bestSchedules(patternFrom(text), targetNamed(target))).back().schedule.name ==
            "mm");
  }
  // A window over bytes, and one of each channel.
  for (const char *product :
       {"%y = mul(cast(i32, if(and(le(0, i + r - 1), lt(i + r, 12)), %x[i + r - 1, k], 7)), "
        "cast(i32, %w[r, k, j]))",
        "%y = mul(cast(i32, if(and(le(0, i + r - 1), lt(i + r, 12)), %x[i + r - 1, j], 7)), "
        "cast(i32, %w[r, k, j]))"})
    check("expr p\ntensor %x: u8[11,20] input\ntensor %w: i8[3,20,20] input\ntensor %y: "
          "i32[11,20] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [i:11, j:20; k:20, r:3] "
          "sum i32\n  " +
          std::string(product) + "\n");
}

// Every candidate of every kind of pattern, not the chosen one alone, is right: it verifies, survives its text, lowers
// to a valid kernel and gives the numbers of the equations. Inputs are small whole numbers, so that sums are exact in
// any order.
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"

using namespace fusec;
using namespace fusec::test;

TEST_CASE("candidates: maps") {
  for (const char *shape : {"7", "1000", "3,5", "64,128", "2,3,4", "33,1", "9,1030", "2,4,1024"}) {
    std::string s = shape, axes, at;
    int rank = 0;
    for (size_t begin = 0; begin <= s.size(); begin = s.find(',', begin) + 1) {
      std::string axis = "i" + std::to_string(rank++);
      axes += (axes.empty() ? "" : ", ") + axis + ":" +
              s.substr(begin, std::min(s.find(',', begin), s.size()) - begin);
      at += (at.empty() ? "" : ", ") + axis;
      if (s.find(',', begin) == std::string::npos)
        break;
    }
    check("expr p\ntensor %x: f32[" + s + "] input\ntensor %y: f32[" + s +
          "] output\ninputs (%x)\noutputs (%y)\nmap m [" + axes + "]\n  %y = add(%x[" + at +
          "], 1.5)\n");
  }
  check(R"(expr scalar
tensor %x: f32[] input
tensor %y: f32[] output
inputs (%x)
outputs (%y)
map m []
  %y = neg(%x[])
)",
        {}, 0);
  check("expr symbolic\n" + kSymbols + R"(tensor %x: f32[n,20] input
tensor %b: f32[20] input
tensor %y: f32[n,20] output
tensor %z: i32[n,20] output
inputs (%x, %b)
outputs (%y, %z)
map m [i:n, j:20]
  %y = max(add(%x[i, j], %b[j]), 0.0)
  %z = cast(i32, %x[i, j])
)",
        {37});
}

TEST_CASE("candidates: maps that move data") {
  for (const char *sizes : {"40 24", "9 100", "128 64", "1 17"}) {
    std::string s = sizes, n = s.substr(0, s.find(' ')), m = s.substr(s.find(' ') + 1);
    check("expr transpose\ntensor %x: f32[" + n + "," + m + "] input\ntensor %y: f32[" + m + "," +
          n + "] output\ninputs (%x)\noutputs (%y)\nmap t [i:" + m + ", j:" + n +
          "]\n  %y = mul(%x[j, i], 2.0)\n");
  }
  check(R"(expr pad
tensor %x: f32[5,30] input
tensor %y: f32[7,40] output
inputs (%x)
outputs (%y)
map p [i:7, j:40]
  %y = if(and(and(le(1, i), le(i, 5)), and(le(3, j), le(j, 32))), %x[i - 1, j - 3], -1.0)
)");
  check(R"(expr gather
tensor %x: f32[9,30] input
tensor %i: u8[11] input
tensor %y: f32[11,30] output
inputs (%x, %i)
outputs (%y)
map g [i:11, j:30]
  %y = %x[cast(i64, %i[i]), j]
)");
  check(R"(expr reshape
tensor %x: f32[6,50] input
tensor %y: f32[15,20] output
inputs (%x)
outputs (%y)
map r [i:15, j:20]
  %y = %x[floordiv(i*20 + j, 50), floormod(i*20 + j, 50)]
)");
}

TEST_CASE("candidates: reductions") {
  for (const char *monoid : {"sum", "max", "min"}) {
    std::string m = monoid;
    for (const char *length : {"1", "5", "64", "1000"}) {
      std::string k = length;
      check(
          "expr rows\ntensor %x: f32[9," + k +
              "] input\ntensor %y: f32[9] output\ninputs (%x)\noutputs (%y)\nreduction r [i:9; k:" +
              k + "] " + m + " f32\n  %y = %x[i, k]\n",
          {}, 0, k.size() > 1 ? 2 : 1);
      check("expr columns\ntensor %x: f32[" + k +
                ",37] input\ntensor %y: f32[37] output\ninputs (%x)\noutputs (%y)\nreduction r "
                "[i:37; k:" +
                k + "] " + m + " f32\n  %y = %x[k, i]\n",
            {}, 0);
      check("expr all\ntensor %x: f32[3," + k +
                "] input\ntensor %y: f32[] output\ninputs (%x)\noutputs (%y)\nreduction r [; i:3, "
                "k:" +
                k + "] " + m + " f32\n  %y = %x[i, k]\n",
            {}, 0);
    }
  }
  check("expr symbolic\n" + kSymbols + R"(tensor %x: f32[n,n] input
tensor %y: f32[n] output
inputs (%x)
outputs (%y)
reduction r [i:n; k:n] sum f32
  %y = mul(%x[i, k], %x[i, k])
)",
        {37});
  check(R"(expr window
tensor %x: f32[2,20,20] input
tensor %y: f32[2,18,18] output
inputs (%x)
outputs (%y)
reduction r [b:2, i:18, j:18; u:3, v:3] max f32
  %y = %x[b, i + u, j + v]
)",
        {}, 0);
  check(R"(expr integers
tensor %x: i8[5,100] input
tensor %y: i32[5] output
inputs (%x)
outputs (%y)
reduction r [i:5; k:100] sum i32
  %y = mul(cast(i32, %x[i, k]), cast(i32, %x[i, k]))
)");
}

TEST_CASE("candidates: the place of an extreme, with ties") {
  for (const char *monoid : {"argmax", "argmin", "argmaxlast", "argminlast"})
    for (const char *read : {"%x[i, k]", "%x[k, i]"})
      check(std::string("expr arg\ntensor %x: f32[65,65] input\ntensor %y: f32[65] output\n"
                        "tensor %w: i64[65] output\ninputs (%x)\noutputs (%y, %w)\n"
                        "reduction r [i:65; k:65] ") +
                monoid + " f32\n  %y = " + read + "\n  %w = k\n",
            {}, 0);
}

TEST_CASE("Sums of what lies apart, of outputs that lie side by side, are shared by units and read "
          "whole sectors") {
  const ExprProgram sums = patternFrom(ProgramText("sums")
                                           .input("x", "196,480")
                                           .reduction("s", "a:1, c:480; k:196", "sum", "%x[k, c]"));
  // Its own rows are the channels, whose neighbours lanes own.
  const ExprProgram means =
      patternFrom(ProgramText("means")
                      .input("x", "196,480")
                      .map("y", "i:196, c:480", "tanh(%x[i, c])")
                      .reduction("s", "a:1, c:480; k:196", "sum", "%y[k, c]"));
  for (const char *name : {"sm_80", "sm_90", "gfx90a"}) {
    INFO(name);
    const Target target = targetNamed(name);
    auto sectors = [&](const ExprProgram &pattern, const Schedule &schedule) {
      const cost::Counts counts = countWork({schedule, pattern}, target).front();
      return counts.levelBytes[1] / (counts.readBytes + counts.writtenBytes);
    };
    const Schedule best = valueOf(bestSchedules(sums, target)).back().schedule;
    CHECK(best.name == "columns");
    CHECK(sectors(sums, best) < 1.01);
    bool lanes = false;
    for (const Schedule &schedule : valueOf(candidateSchedules(means, target)))
      lanes = lanes || (schedule.name == "stitch-lanes" && sectors(means, schedule) < 1.01);
    CHECK(lanes);
  }
}

TEST_CASE("candidates: a reduction and the map that finishes it") {
  check(R"(expr norm
tensor %x: f32[10,100] input
tensor %b: f32[10] input
tensor %s: f32[10] temp
tensor %y: f32[10] output
inputs (%x, %b)
outputs (%y)
reduction r [i:10; k:100] sum f32
  %s = mul(%x[i, k], %x[i, k])
map f [i:10]
  %y = add(mul(%s[i], 0.5), %b[i])
)");
  check(R"(expr columns
tensor %x: f32[30,4,50] input
tensor %s: f32[4,50] temp
tensor %y: f32[4,50] output
inputs (%x)
outputs (%y)
reduction r [i:4, j:50; k:30] max f32
  %s = %x[k, i, j]
map f [i:4, j:50]
  %y = max(%s[i, j], 1.0)
)",
        {}, 0);
}

TEST_CASE("candidates: alternatives of the equations") {
  // Halves of whole numbers divided by powers of two: exact in any order.
  check(R"(expr deferred
tensor %a: f32[6,70] input
tensor %y: f32[6] output
inputs (%a)
outputs (%y)
reduction y [i:6; k:70] sum f32
  %y = div(mul(%a[i, k], %a[i, 3]), 4.0)
)",
        {}, 0, 8);
  // In two phases: 16384 and 16411 terms, the second one not in equal parts.
  for (const char *length : {"16384", "16411"})
    for (const char *monoid : {"sum", "max"})
      check(std::string("expr long\ntensor %a: f32[") + length +
                "] input\ntensor %y: f32[] output\ninputs (%a)\noutputs (%y)\nreduction y [; k:" +
                length + "] " + monoid + " f32\n  %y = %a[k]\n",
            {}, 0, 6);
}

TEST_CASE("candidates: cascades") {
  // Maximum, sum of exponentials and what is made of them: rows of several vectors and cut ones, long and short.
  for (const char *sizes : {"9 1003", "3 40", "1 300"}) {
    std::string s = sizes, m = s.substr(0, s.find(' ')), k = s.substr(m.size() + 1);
    check("expr lse\ntensor %x: f32[" + m + "," + k + "] input\ntensor %m: f32[" + m +
              "] temp\ntensor %s: f32[" + m + "] temp\ntensor %y: f32[" + m + "," + k +
              "] output\ninputs (%x)\noutputs (%y)\nreduction m [i:" + m + "; k:" + k +
              "] max f32\n  %m = %x[i, k]\nreduction s [i:" + m + "; k:" + k +
              "] sum f32\n  %s = exp(sub(%x[i, k], %m[i]))\nmap y [i:" + m + ", k:" + k +
              "]\n  %y = sub(sub(%x[i, k], %m[i]), log(%s[i]))\n",
          {}, 1e-5, 5);
  }
  check(R"(expr layernorm
tensor %x: f32[7,203] input
tensor %s: f32[7] temp
tensor %v: f32[7] temp
tensor %y: f32[7,203] output
inputs (%x)
outputs (%y)
reduction s [i:7; k:203] sum f32
  %s = %x[i, k]
reduction v [i:7; k:203] sum f32
  let t0 = sub(%x[i, k], div(%s[i], 203.0));
  %v = mul(t0, t0)
map y [i:7, k:203]
  %y = div(sub(%x[i, k], div(%s[i], 203.0)), sqrt(add(div(%v[i], 203.0), 0.001)))
)",
        {}, 1e-5, 5);
  // RMSNorm in front of a product with one column: the factor waits, and both sums run in one pass.
  check(R"(expr rms
tensor %x: f32[7,203] input
tensor %w: f32[203] input
tensor %s: f32[7] temp
tensor %y: f32[7] output
inputs (%x, %w)
outputs (%y)
reduction s [i:7; k:203] sum f32
  %s = mul(%x[i, k], %x[i, k])
reduction y [i:7; k:203] sum f32
  %y = mul(div(%x[i, k], sqrt(add(div(%s[i], 203.0), 0.00001))), %w[k])
)",
        {}, 1e-5, 5);
  // A symbolic row, two reduced axes, and a third reduction that uses both others.
  check("expr chain\n" + kSymbols + R"(tensor %x: f32[4,n,6] input
tensor %v: f32[n,6] input
tensor %m: f32[4] temp
tensor %l: f32[4] output
tensor %o: f32[4] output
inputs (%x, %v)
outputs (%l, %o)
reduction m [i:4; j:n, k:6] max f32
  %m = %x[i, j, k]
reduction l [i:4; j:n, k:6] sum f32
  %l = exp(sub(%x[i, j, k], %m[i]))
reduction o [i:4; j:n, k:6] sum f32
  %o = mul(%v[j, k], div(exp(sub(%x[i, j, k], %m[i])), %l[i]))
)",
        {37}, 1e-5, 4);
}

TEST_CASE("candidates: contractions") {
  for (const char *sizes : {"33 37 41", "1 64 100", "64 64 64", "130 17 5", "5 1 200"}) {
    std::string s = sizes, m = s.substr(0, s.find(' ')), rest = s.substr(m.size() + 1),
                n = rest.substr(0, rest.find(' ')), k = rest.substr(n.size() + 1);
    std::string text = "expr mm\ntensor %a: f32[" + m + "," + k + "] input\ntensor %w: f32[" + k +
                       "," + n + "] input\ntensor %b: f32[" + n + "] input\ntensor %c: f32[" + m +
                       "," + n + "] temp\ntensor %y: f32[" + m + "," + n +
                       "] output\ninputs (%a, %w, %b)\noutputs (%y)\nreduction r [i:" + m +
                       ", j:" + n + "; k:" + k + "] sum f32\n  %c = mul(%a[i, k], %w[k, j])\n" +
                       "map f [i:" + m + ", j:" + n + "]\n  %y = max(add(%c[i, j], %b[j]), 0.0)\n";
    check(text, {}, 0);
    INFO("constant weights\n" << text);
    ExprProgram pattern = patternFrom(text);
    fix(pattern, "w");
    checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
  }
  check("expr batched\n" + kSymbols + R"(tensor %a: f32[3,n,20] input
tensor %b: f32[3,24,20] input
tensor %y: f32[3,n,24] output
inputs (%a, %b)
outputs (%y)
reduction r [b:3, i:n, j:24; k:20] sum f32
  %y = mul(%a[b, i, k], %b[b, j, k])
)",
        {37});
  check(R"(expr half
tensor %a: f16[40,50] input
tensor %b: f16[50,30] input
tensor %c: f32[40,30] temp
tensor %y: f16[40,30] output
inputs (%a, %b)
outputs (%y)
reduction r [i:40, j:30; k:50] sum f32
  %c = mul(cast(f32, %a[i, k]), cast(f32, %b[k, j]))
map f [i:40, j:30]
  %y = cast(f16, %c[i, j])
)");
}

TEST_CASE("candidates: convolutions with padding") {
  std::string text = R"(expr conv
tensor %x: f32[2,9,11,5] input
tensor %w: f32[3,3,5,18] input
tensor %y: f32[2,9,11,18] output
inputs (%x, %w)
outputs (%y)
reduction r [b:2, i:9, j:11, o:18; u:3, v:3, c:5] sum f32
  %y = mul(if(and(and(le(0, i + u - 1), le(i + u, 9)), and(le(0, j + v - 1), le(j + v, 11))),
              %x[b, i + u - 1, j + v - 1, c], 0.0), %w[u, v, c, o])
)";
  check(text, {}, 0);
  ExprProgram pattern = patternFrom(text);
  fix(pattern, "w");
  checkCandidates(pattern, randomInputs(pattern, {}), {}, 0);
}

/// A convolution of images [b, c, height, width] with `filters` windows of 3x3; `backwards` walks the window from its
/// last row and column, as a transposed convolution does.
static std::string windows(int height, int width, int channels, int filters, int stride,
                           bool backwards, bool filtersLast) {
  std::string h = std::to_string(height), w = std::to_string(width), c = std::to_string(channels),
              o = std::to_string(filters), s = std::to_string(stride);
  std::string rows = std::to_string((height - 3) / stride + 1),
              columns = std::to_string((width - 3) / stride + 1);
  std::string u = backwards ? "u*-1 + 2" : "u", v = backwards ? "v*-1 + 2" : "v";
  std::string domain = filtersLast ? "b:2, i:" + rows + ", j:" + columns + ", o:" + o
                                   : "b:2, o:" + o + ", i:" + rows + ", j:" + columns;
  std::string shape =
      filtersLast ? "2," + rows + "," + columns + "," + o : "2," + o + "," + rows + "," + columns;
  return "expr windows\ntensor %x: f32[2," + c + "," + h + "," + w + "] input\ntensor %f: f32[" +
         o + "," + c + ",3,3] input\ntensor %y: f32[" + shape +
         "] output\ninputs (%x, %f)\noutputs (%y)\nreduction r [" + domain + "; c:" + c +
         ", u:3, v:3] sum f32\n  %y = mul(%x[b, c, i*" + s + " + " + u + ", j*" + s + " + " + v +
         "], %f[o, c, u, v])\n";
}

TEST_CASE("candidates: windows that slide, boxes of them in a GPU's shared memory") {
  // Lines of 8, 16 and 32 elements divide the tiles or are divided by them; lines of 11 and 27 do neither.
  for (int width : {10, 18, 34, 13, 29})
    for (bool filtersLast : {true, false})
      check(windows(9, width, 3, 18, 1, false, filtersLast));
  check(windows(19, 67, 5, 10, 2, false, true));
  for (bool filtersLast : {true, false})
    check(windows(12, 17, 2, 7, 1, true, filtersLast));
  ExprProgram pattern = patternFrom(windows(9, 34, 3, 18, 1, false, true));
  for (const char *target : {"sim:sm_90", "sim:gfx90a"}) {
    int boxes = 0, withBoxes = 0;
    for (const Schedule &schedule : valueOf(candidateSchedules(pattern, targetNamed(target)))) {
      const auto isBox = [](const Operand &operand) { return operand.digits[0].index >= 0; };
      boxes += static_cast<int>(std::ranges::count_if(schedule.operands, isBox));
      withBoxes += schedule.name == "mm-boxes";
    }
    CHECK(boxes == withBoxes); // of the image alone
    CHECK(boxes >= 2);
  }
}

TEST_CASE("candidates: scatters, with duplicates") {
  for (const char *combiner : {"assign", "add", "mul", "min", "max"})
    check(std::string("expr s\ntensor %base: f32[9,40] input\ntensor %i: u8[13] input\n"
                      "tensor %u: f32[13,40] input\ntensor %y: f32[9,40] output\n"
                      "inputs (%base, %i, %u)\noutputs (%y)\nscatter s [i:13, j:40] ") +
          combiner + " base %base\n  %y[cast(i64, %i[i]), j] = %u[i, j] where lt(i, 12)\n");
}

TEST_CASE("candidates: a matrix whose rows lie along the sum, times a vector, on GPUs") {
  auto text = [](const std::string &matrix, const std::string &index) {
    return "expr mv\ntensor %x: f32[960] input\ntensor %w: f32[" + matrix +
           "] input\ntensor %y: f32[240] output\ninputs (%x, %w)\noutputs (%y)\n" +
           "reduction r [n:240; k:960] sum f32\n  %y = mul(%x[k], %w[" + index + "])\n";
  };
  auto hasRows = [](const ExprProgram &pattern, const Target &target) {
    const std::vector<Schedule> all = valueOf(candidateSchedules(pattern, target));
    return std::any_of(all.begin(), all.end(),
                       [](const Schedule &s) { return s.name.find("row") != std::string::npos; });
  };
  for (const char *name : {"sm_80", "gfx90a"}) {
    const Target target = targetNamed(name);
    const ExprProgram rows = patternFrom(text("240,960", "n, k"));
    CHECK(hasRows(rows, target));
    CHECK_FALSE(hasRows(patternFrom(text("960,240", "k, n")), target));
    const Schedule best = valueOf(bestSchedules(rows, target)).back().schedule;
    CHECK(best.name.find("mm") == std::string::npos);
  }
}

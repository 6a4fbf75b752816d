// Contractions: which equations are some, and that their candidates are right (as in CandidatesTest.cpp).
#include "Candidates.h"
#include "Tiling/counts/CountWork.h"

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

namespace {

/// A window of each channel over an image [height, width, channels], padded, in strides that divide both; the weights
/// are [taps, taps, channels]. `rows`: of the result; `apart`: how far taps lie from each other.
std::string depthwise(const std::string &height, const std::string &rows, int width, int channels,
                      int taps, int stride, int apart = 1) {
  const std::string w = std::to_string(width), c = std::to_string(channels),
                    t = std::to_string(taps), s = std::to_string(stride), a = std::to_string(apart),
                    half = std::to_string(taps / 2 * apart),
                    columns = std::to_string(width / stride);
  const std::string y = "i*" + s + " + r*" + a + " - " + half,
                    x = "j*" + s + " + q*" + a + " - " + half;
  auto within = [](const std::string &index, const std::string &extent) {
    return "and(le(0, " + index + "), lt(" + index + ", " + extent + "))";
  };
  return "tensor %x: f32[" + height + "," + w + "," + c + "] input\ntensor %w: f32[" + t + "," + t +
         "," + c + "] input\ntensor %y: f32[" + rows + "," + columns + "," + c +
         "] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [i:" + rows + ", j:" + columns +
         ", c:" + c + "; r:" + t + ", q:" + t + "] sum f32\n  %y = mul(if(and(" +
         within(y, height == "n" ? "dim(n)" : height) + ", " + within(x, w) + "), %x[" + y + ", " +
         x + ", c], 0.0), %w[r, q, c])\n";
}

} // namespace

TEST_CASE(
    "candidates: windows of each channel copy few rows twice and leave registers for what taps "
    "share") {
  for (const int stride : {1, 2})
    for (const int taps : {3, 5})
      check("expr p\n" + depthwise("18", std::to_string(18 / stride), 12, 20, taps, stride));
  check("expr p\n" + kSymbols + depthwise("n", "n", 12, 20, 3, 1), {17});

  for (const char *name : {"x86-64-v3", "x86-64-v4"})
    for (const int stride : {1, 2})
      for (const int taps : {3, 5, 7}) {
        INFO(name << ": " << taps << " taps in strides of " << stride);
        const Target target = targetNamed(name);
        const ExprProgram pattern = patternFrom(
            "expr p\n" + depthwise("56", std::to_string(56 / stride), 56, 96, taps, stride));
        const Schedule best = valueOf(bestSchedules(pattern, target)).back().schedule;
        CHECK(best.name == "mm");
        // Loads and stores of copies, of which one each for a vector of the image are the least.
        const cost::Counts counts = countWork({best, pattern}, target).front();
        const double copies = counts.stagedLoads * counts.blocks,
                     least = 2 * 56. * 56 * 96 / target.lanes;
        INFO(copies / least << " copies of the image");
        CHECK(copies >= least);
        CHECK(copies < 1.75 * least);
        // Beside each sum in a register lies a vector of the image, besides one of weights.
        int64_t sums = 0;
        for (const GirBuffer &buffer : kernelOf(pattern, best).kernel.buffers)
          if (buffer.level == MemLevel::Register)
            sums += numElements(buffer.shape).constValue();
        INFO(sums << " sums");
        CHECK(sums >= target.vectorRegisters / 4);
        CHECK(2 * sums < target.vectorRegisters);
      }
}

TEST_CASE("candidates: blocks that share halos, the last of which has fewer rows than others") {
  for (const int taps : {5, 7}) {
    const std::string text = "expr p\n" + depthwise("67", "67", 9, 17, taps, 1, 2);
    check(text);
    const ExprProgram pattern = patternFrom(text);
    bool hasRemainder = false;
    for (const char *name : {"x86-64-v3", "x86-64-v4"})
      for (const auto &candidate : valueOf(bestSchedules(pattern, targetNamed(name))))
        for (const LoopNode *block = candidate.schedule.tree[0].loop(LoopKind::Block); block;
             block = block->children[0].loop(LoopKind::Block))
          hasRemainder |= block->axis == 0 && block->step > 1 && 67 % block->step != 0;
    CHECK(hasRemainder);
  }
}

TEST_CASE(
    "candidates: blocks have all rows of a product whose weights a core's caches do not hold") {
  // 9.4 MB, which each block brings in for itself; of the rows a core's second cache has room for some 42.
  ExprProgram pattern = patternFrom(
      "expr p\ntensor %a: f32[256,3072] input\ntensor %b: f32[3072,768] input\ntensor %y: "
      "f32[256,768] output\ninputs (%a, %b)\noutputs (%y)\nreduction y [i:256, j:768; k:3072] sum "
      "f32\n  %y = mul(%a[i, k], %b[k, j])\n");
  fix(pattern, "b");
  for (const char *target : {"x86-64-v3", "x86-64-v4"}) {
    INFO(target);
    const Schedule best = valueOf(bestSchedules(pattern, targetNamed(target))).back().schedule;
    CHECK(best.tree.front().loop()->step >= 256);
  }
}

TEST_CASE("candidates: a product's rows that divisions find take as long as rows in order") {
  // Windows of 7 x 7 of an image of 14 x 14.
  const auto product = [](const std::string &image, const std::string &place) {
    ExprProgram pattern = patternFrom(
        "expr p\ntensor %x: f32" + image +
        " input\ntensor %w: f32[256,384] input\ntensor %y: f32[4,49,384] output\ninputs (%x, "
        "%w)\noutputs (%y)\nreduction y [i:4, j:49, n:384; k:256] sum f32\n  %y = mul(%x" +
        place + ", %w[k, n])\n");
    fix(pattern, "w");
    return pattern;
  };
  const ExprProgram windows =
                        product("[14,14,256]", "[floordiv(i, 2)*7 + floordiv(j, 7), floormod(i, "
                                               "2)*7 + floormod(j, 7), k]"),
                    inOrder = product("[4,49,256]", "[i, j, k]");
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Target target = targetNamed(name);
    const double found = valueOf(bestSchedules(windows, target)).back().seconds;
    const double expected = valueOf(bestSchedules(inOrder, target)).back().seconds;
    CHECK(found < 1.1 * expected);
    CHECK(found > 0.9 * expected);
  }
}

TEST_CASE(
    "candidates: rows that lie at no one distance are one block's, so that few read weights once") {
  const auto heads = [](const std::string &batch, const std::string &length, int width,
                        int columns) {
    const std::string d = std::to_string(width), n = std::to_string(columns);
    return "tensor %x: f32[" + batch + ",3," + length + "," + d + "] input\ntensor %w: f32[" +
           std::to_string(3 * width) + "," + n + "] input\ntensor %y: f32[" + batch + "," + length +
           "," + n + "] output\ninputs (%x, %w)\noutputs (%y)\nreduction y [b:" + batch +
           ", s:" + length + ", n:" + n + "; h:3, d:" + d +
           "] sum f32\n  %y = mul(%x[b, h, s, d], %w[h*" + d + " + d, n])\n";
  };
  check("expr p\n" + heads("5", "2", 7, 20));
  ExprProgram fixed = patternFrom("expr p\n" + heads("5", "2", 7, 20));
  fix(fixed, "w");
  checkCandidates(fixed, randomInputs(fixed, {}), {}, 1e-4);
  // Rows of two groups, between which one stands that the columns need; and columns that nothing depends on.
  check("expr p\ntensor %x: f32[3,2,5,7] input\ntensor %w: f32[2,7,20] input\ntensor %y: "
        "f32[3,2,5,20] "
        "output\ninputs (%x, %w)\noutputs (%y)\nreduction y [b:3, g:2, s:5, n:20; k:7] sum f32\n  "
        "%y = "
        "mul(%x[b, g, s, k], %w[g, k, n])\n");
  check("expr p\ntensor %x: f32[5,7] input\ntensor %w: f32[7] input\ntensor %y: f32[5,20] "
        "output\ninputs (%x, %w)\noutputs (%y)\nreduction y [i:5, j:20; k:7] sum f32\n  %y = "
        "mul(%x[i, k], %w[k])\n");

  ExprProgram pattern = patternFrom("expr p\n" + heads("8", "2", 256, 768));
  fix(pattern, "w");
  for (const char *name : {"x86-64-v3", "x86-64-v4"}) {
    INFO(name);
    const Schedule best = valueOf(bestSchedules(pattern, targetNamed(name))).back().schedule;
    const LoopNode *rows = best.tree.front().loop();
    CHECK(rows->step >= 16);
    CHECK(best.axes[rows->axis].in(0)->positions.size() == 2);
  }
}
